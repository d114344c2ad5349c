package main

import (
	"time"
)

// The kinds of problems.
const (
	// problemDamaged: something is not what was written, is missing, or breaks a rule.
	problemDamaged = "damaged"
	// problemDiffers: nodes contradict each other.
	problemDiffers = "differs"
	// problemNewer: it was written by a newer program and cannot be judged.
	problemNewer = "newer"
)

// The parts of a data directory that a problem can be in.
const (
	partIdentity = "identity"
	partLog      = "log"
	partSnapshot = "snapshot"
	partState    = "state"
)

// checkJSON is what check prints. Scripts rely on its shape.
type checkJSON struct {
	OK         bool            `json:"ok"`
	Nodes      []nodeJSON      `json:"nodes"`
	Comparison *comparisonJSON `json:"comparison"`
	Problems   []problemJSON   `json:"problems"`
}

type nodeJSON struct {
	Dir                 string            `json:"dir"`
	ID                  string            `json:"id"`
	Identity            *identityJSON     `json:"identity"`
	Vote                *voteJSON         `json:"vote"`
	Log                 *logJSON          `json:"log"`
	Snapshots           []snapshotJSON    `json:"snapshots"`
	UnfinishedSnapshots []string          `json:"unfinished_snapshots"`
	State               *checkedStateJSON `json:"state"`
}

type identityJSON struct {
	Incarnation string        `json:"incarnation"`
	Starts      uint64        `json:"starts"`
	ClusterID   string        `json:"cluster_id"`
	Founders    []founderJSON `json:"founders"`
	Seen        []seenJSON    `json:"seen"`
}

type founderJSON struct {
	ID          string `json:"id"`
	PeerAddr    string `json:"peer_addr"`
	Incarnation string `json:"incarnation"`
}

type seenJSON struct {
	ID     string `json:"id"`
	Starts uint64 `json:"starts"`
}

type voteJSON struct {
	Term        uint64 `json:"term"`
	VotedInTerm uint64 `json:"voted_in_term"`
	VotedFor    string `json:"voted_for"`
}

type logJSON struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// RightUpTo is the last entry before the first damage; Last if there is none.
	RightUpTo uint64 `json:"right_up_to"`
	OK        bool   `json:"ok"`
}

type snapshotJSON struct {
	Name    string    `json:"name"`
	Index   uint64    `json:"index"`
	Term    uint64    `json:"term"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
	Usable  bool      `json:"usable"`
}

// checkedStateJSON is the state that was made of a snapshot and the log after it.
type checkedStateJSON struct {
	// Snapshot is the index of the snapshot it was made of, 0 if of the log alone, and
	// UpTo that of the last entry of the log that went into it.
	SnapshotIndex uint64 `json:"snapshot_index"`
	UpTo          uint64 `json:"up_to"`
	// Complete tells a state with the whole log from one that stops before damage.
	Complete     bool   `json:"complete"`
	Keys         uint64 `json:"keys"`
	Held         uint64 `json:"held"`
	HighestEpoch uint64 `json:"highest_epoch"`
	NowMS        int64  `json:"now_ms"`
	DigestIndex  uint64 `json:"digest_index"`
	Digest       string `json:"digest"`
}

type comparisonJSON struct {
	// Index is the latest log entry that all compared nodes have.
	Index       uint64            `json:"index"`
	DigestIndex uint64            `json:"digest_index"`
	Digests     map[string]string `json:"digests"`
	// Differ are those whose digest is not that of most; all, if no digest is.
	Differ      []string          `json:"differ"`
	NotCompared []notComparedJSON `json:"not_compared"`
}

type notComparedJSON struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

type problemJSON struct {
	Kind string `json:"kind"`
	Dir  string `json:"dir"`
	Part string `json:"part"`
	// File, Place and Index are where it is, as far as that can be told.
	File    string `json:"file"`
	Place   string `json:"place"`
	Index   uint64 `json:"index"`
	Message string `json:"message"`
}

func resultOf(nodes []*checkedNode, c *comparison) checkJSON {
	result := checkJSON{Nodes: []nodeJSON{}, Comparison: c.result(), Problems: []problemJSON{}}
	for _, n := range nodes {
		result.Nodes = append(result.Nodes, n.nodeJSON)
		result.Problems = append(result.Problems, n.problems...)
	}
	result.OK = len(result.Problems) == 0
	return result
}
