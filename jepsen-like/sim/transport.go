package sim

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet"
)

// message is one of raft's, to be let through or not.
type message struct {
	to        raft.ServerID
	heartbeat bool
}

// censor decides which of raft's messages get through. It is called by many goroutines.
type censor func(message) bool

// transport is the real one, of which some messages get lost.
type transport struct {
	raftnet.Transport
	censor censor
}

var errLost = errors.New("the message got lost")

// lostAfter is how long it takes until a message counts as lost.
const lostAfter = 20 * time.Millisecond

func (t *transport) pass(m message) error {
	if t.censor == nil || t.censor(m) {
		return nil
	}
	time.Sleep(lostAfter)
	return errLost
}

func (t *transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	heartbeat := len(args.Entries) == 0 && args.PrevLogEntry == 0 && args.PrevLogTerm == 0
	if err := t.pass(message{to: id, heartbeat: heartbeat}); err != nil {
		return err
	}
	return t.Transport.AppendEntries(id, target, args, resp)
}

func (t *transport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := t.pass(message{to: id}); err != nil {
		return err
	}
	return t.Transport.RequestVote(id, target, args, resp)
}

func (t *transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if err := t.pass(message{to: id}); err != nil {
		return err
	}
	return t.Transport.RequestPreVote(id, target, args, resp)
}
