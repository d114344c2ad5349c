// Package fsm is the replicated state machine: it turns the entries of the raft
// log into lease records, and does so with the same bytes on every node.
//
// # What it promises
//
// The rules of package lease, decided on the cluster clock that the entries
// carry. What the entries do is in memory first, and several batches of them reach the
// state file in one bbolt transaction, the applied index included; readers see all that
// was applied. The core ([FSM.ApplyBatch] is its shell) reads no
// clock, no randomness and no map order; a digest over the whole state, kept
// incrementally, lets nodes compare themselves at equal indexes.
//
// The state machine guards itself. One function writes records, and it refuses an
// epoch that moves by other than 0 or +1, a floor that goes back and a removal.
// An entry that is not understood, a local I/O error or a broken invariant latches
// the FSM: it changes nothing any more and tells whoever opened it, once.
//
// # What it does not promise
//
// Durability. The state file is a scratch cache of the log: never synced, deleted
// when opened, rebuilt from snapshot and log. And views are of this node only:
// whether they are fresh is for whoever confirms leadership to say.
//
// # Layout
//
// A record's value holds the record, the request id of its grant and the key's
// bounded history, so that a renewal costs one write in the tree. The listing of
// all keys in log order is an index with one write at its right edge per log
// entry.
//
// It may be imported by raftnet and internal/node, and imports lease and fsm/feed, which
// has the events of what is applied. Start
// reading at apply.go, which has the rules; command.go, record.go and snapshot.go
// have the three formats, which are for ever.
package fsm
