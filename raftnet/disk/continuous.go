package disk

// Extent is what a directory has: the log from First to Last, both 0 if it is empty,
// the newest usable snapshot with everything up to Snapshot, 0 if there is none, and
// that a snapshot with everything up to Covered was once finished, on which the log
// was shortened.
type Extent struct {
	First, Last       uint64
	Snapshot, Covered uint64
}

// Continuous returns a [*GapError] if a state cannot be made of what e has, or only an
// older one than the node has already had: the log has to go on where the snapshot
// ends, and both together have to reach as far as any snapshot did. raft itself would
// go on with the older one. It is pure; dir is for the error.
func Continuous(dir string, e Extent) error {
	gap := GapError{Dir: dir, From: e.Snapshot + 1, Snapshot: e.Snapshot}
	switch {
	case e.Last > e.Snapshot && e.First > e.Snapshot+1:
		gap.To = e.First - 1
	case max(e.Last, e.Snapshot) < e.Covered:
		gap.From = max(e.Last, e.Snapshot) + 1
		gap.To = e.Covered
	default:
		return nil
	}
	return &gap
}
