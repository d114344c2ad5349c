package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tellCheck prints the result of a check for people.
func tellCheck(w io.Writer, result checkJSON) {
	for _, n := range result.Nodes {
		columns(w, nodeRows(n))
		fmt.Fprintln(w)
		if len(n.Snapshots) > 0 {
			columns(w, snapshotRows(n.Snapshots))
			fmt.Fprintln(w)
		}
	}
	if result.Comparison != nil {
		columns(w, comparisonRows(result.Comparison))
		fmt.Fprintln(w)
	}
	if result.OK {
		fmt.Fprintln(w, verdict(result.Comparison))
		return
	}
	for _, p := range result.Problems {
		fmt.Fprintf(w, "%s: %s\n", strings.ToUpper(p.Kind), p.Message)
	}
}

// verdict says that there are no problems, and no more than was looked at.
func verdict(c *comparisonJSON) string {
	switch {
	case c == nil || len(c.NotCompared) == 0:
		return "all is well"
	case len(c.Digests) == 0:
		return "each directory by itself is well, but nothing could be compared"
	default:
		return "each directory by itself is well, but not all could be compared"
	}
}

func nodeRows(n nodeJSON) [][]string {
	rows := [][]string{{"directory", n.Dir}}
	switch i := n.Identity; {
	case i == nil:
		rows = append(rows, []string{"node", "unknown"})
	default:
		rows = append(rows, []string{"node", fmt.Sprintf("%s, incarnation %s, in its start %d", n.ID, i.Incarnation, i.Starts)})
		rows = append(rows, foundingRows(i)...)
	}
	vote, log := "unknown", "none"
	switch v := n.Vote; {
	case v != nil && v.VotedFor == "":
		vote = fmt.Sprintf("term %d, no vote yet", v.Term)
	case v != nil:
		vote = fmt.Sprintf("term %d; the last vote was in term %d for %s", v.Term, v.VotedInTerm, v.VotedFor)
	}
	if n.Log != nil {
		log = logText(*n.Log)
	}
	if n.Log != nil || n.Identity == nil {
		rows = append(rows, []string{"vote", vote})
	}
	return append(rows, []string{"log", log}, []string{"snapshots", snapshotsText(n)}, []string{"state", stateText(n.State)})
}

func foundingRows(i *identityJSON) [][]string {
	if i.ClusterID == "" {
		return [][]string{{"cluster", "not founded yet"}}
	}
	var founders, seen []string
	for _, f := range i.Founders {
		founders = append(founders, f.ID+" "+f.PeerAddr)
	}
	for _, s := range i.Seen {
		seen = append(seen, fmt.Sprintf("%s in its start %d", s.ID, s.Starts))
	}
	return [][]string{{"cluster", i.ClusterID}, {"founders", strings.Join(founders, ", ")}, {"met", orDash(strings.Join(seen, ", "))}}
}

func logText(l logJSON) string {
	switch {
	case l.OK && l.Last == 0:
		return "empty"
	case l.OK:
		return fmt.Sprintf("entries %d to %d", l.First, l.Last)
	case l.Last == 0:
		return "DAMAGED: its range is unknown"
	case l.RightUpTo == 0:
		return fmt.Sprintf("DAMAGED: entries %d to %d, right up to none", l.First, l.Last)
	default:
		return fmt.Sprintf("DAMAGED: entries %d to %d, right up to %d", l.First, l.Last, l.RightUpTo)
	}
}

func snapshotsText(n nodeJSON) string {
	text := strconv.Itoa(len(n.Snapshots))
	if len(n.UnfinishedSnapshots) > 0 {
		text += fmt.Sprintf(", and %d that were never finished, which does no harm", len(n.UnfinishedSnapshots))
	}
	return text
}

func snapshotRows(snapshots []snapshotJSON) [][]string {
	rows := [][]string{{"SNAPSHOT UP TO", "TERM", "BYTES", "CREATED", "USABLE"}}
	for _, s := range snapshots {
		usable := "yes"
		if !s.Usable {
			usable = "NO"
		}
		rows = append(rows, []string{
			strconv.FormatUint(s.Index, 10), strconv.FormatUint(s.Term, 10), strconv.FormatInt(s.Bytes, 10), s.Created.Format(time.RFC3339), usable,
		})
	}
	return rows
}

func stateText(s *checkedStateJSON) string {
	if s == nil {
		return "none can be made"
	}
	of := "of the log alone"
	if s.SnapshotIndex > 0 {
		of = fmt.Sprintf("of the snapshot up to %d and the log after it", s.SnapshotIndex)
	}
	text := fmt.Sprintf("%d keys, %d held, highest epoch %d; digest %s at index %d; %s, up to entry %d", s.Keys, s.Held, s.HighestEpoch, shortDigest(s.Digest), s.DigestIndex, of, s.UpTo)
	if !s.Complete {
		return text + ", NOT COMPLETE"
	}
	return text + ", the last of which may never have been committed"
}

func comparisonRows(c *comparisonJSON) [][]string {
	rows := [][]string{{"compared", "nothing could be compared"}}
	if len(c.Digests) > 0 {
		verdict := "the same"
		if len(c.Differ) > 0 {
			verdict = "THEY DIFFER"
		}
		rows = [][]string{{"compared", fmt.Sprintf("%d nodes at log entry %d, the latest that all have: %s", len(c.Digests), c.Index, verdict)}}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Digests)) {
		rows = append(rows, []string{"", id, shortDigest(c.Digests[id])})
	}
	for _, n := range c.NotCompared {
		rows = append(rows, []string{"", n.ID, "not compared: " + n.Why})
	}
	return rows
}
