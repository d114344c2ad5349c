package wire

// maxBehind is how many log entries a node that keeps up may be behind: what a cluster
// commits in the time that its nodes take to say how far they are.
const maxBehind = 1000

// Behind reports whether a node that has applied the log up to applied, while some node
// of its cluster has applied it up to furthest, has not what the cluster had committed: it
// has applied nothing yet, as after a start, or is behind by more than is in transit at
// any time.
func Behind(applied, furthest uint64) bool {
	return applied < furthest && (applied == 0 || furthest-applied > maxBehind)
}
