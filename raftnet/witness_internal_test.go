package raftnet

import (
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/lease"
)

// gated is a transport whose answers come when the test says so.
type gated struct {
	Transport
	arrived chan struct{}
	release chan raft.AppendEntriesResponse
	votes   []error
}

func (g *gated) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	g.arrived <- struct{}{}
	*resp = <-g.release
	return nil
}

func (g *gated) RequestVote(raft.ServerID, raft.ServerAddress, *raft.RequestVoteRequest, *raft.RequestVoteResponse) error {
	err := g.votes[0]
	g.votes = g.votes[1:]
	return err
}

func stands() bool { return false }

func TestAFullNodeDoesNotStandForElection(t *testing.T) {
	w := newWitness(&gated{}, func() bool { return true })
	if err := w.RequestVote("b", "b", nil, nil); !errors.Is(err, errAbstains) {
		t.Errorf("it asks for a vote: %v", err)
	}
	if err := w.RequestPreVote("b", "b", nil, nil); !errors.Is(err, errAbstains) {
		t.Errorf("it asks whether it would get a vote: %v", err)
	}
}

func TestWitnessCountsOnlyAnswersOfTheTermToLaterRequests(t *testing.T) {
	voters := []raft.ServerID{"a", "b", "c"}
	g := &gated{arrived: make(chan struct{}), release: make(chan raft.AppendEntriesResponse)}
	w := newWitness(g, stands)
	ask := func(term uint64) (answer func(raft.AppendEntriesResponse)) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var resp raft.AppendEntriesResponse
			_ = w.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: term}, &resp)
		}()
		<-g.arrived
		return func(r raft.AppendEntriesResponse) { g.release <- r; <-done }
	}
	early := ask(7)
	asked := round{term: 7, after: w.sent.Load()}
	early(raft.AppendEntriesResponse{Term: 7, Success: true})
	if w.confirmed(asked, "a", voters) {
		t.Error("an answer to a request sent before counts")
	}
	ask(7)(raft.AppendEntriesResponse{Term: 8})
	if w.confirmed(asked, "a", voters) {
		t.Error("an answer of a later term counts")
	}
	ask(6)(raft.AppendEntriesResponse{Term: 6, Success: true})
	if w.confirmed(asked, "a", voters) {
		t.Error("an answer in an earlier term counts")
	}
	ask(7)(raft.AppendEntriesResponse{Term: 7, Success: false})
	if !w.confirmed(asked, "a", voters) {
		t.Error("an answer in the term to a later request does not count")
	}
	if w.confirmed(asked, "a", []raft.ServerID{"a", "b", "c", "d"}) || w.confirmed(asked, "x", voters) {
		t.Error("half of the voters are taken for a majority")
	}
	if !w.confirmed(asked, "a", []raft.ServerID{"a"}) {
		t.Error("a quorum of one is not confirmed at once")
	}
}

func TestWitnessDoesNotMixTerms(t *testing.T) {
	voters := []raft.ServerID{"a", "b", "c"}
	for _, answered := range []uint64{6, 8} {
		w := newWitness(&gated{}, stands)
		w.note("b", ack{term: answered, sent: 9})
		if w.confirmed(round{term: 7, after: 1}, "a", voters) {
			t.Errorf("an answer in term %d confirms term 7", answered)
		}
	}
}

func TestWitnessHasNeitherPipelineNorHeartbeatHandler(t *testing.T) {
	w := newWitness(&gated{}, stands) // its embedded transport is nil: to reach it would panic
	w.SetHeartbeatHandler(func(raft.RPC) {})
	if _, err := w.AppendEntriesPipeline("b", "b"); !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
		t.Errorf("a pipeline: %v", err)
	}
}

func TestVotesAreAskedAgainOverStaleConnections(t *testing.T) {
	g := &gated{votes: []error{io.EOF, io.EOF, nil}}
	if err := newWitness(g, stands).RequestVote("b", "b", nil, nil); err != nil || len(g.votes) != 0 {
		t.Errorf("%v, %d left", err, len(g.votes))
	}
	refused := errors.New("refused")
	g = &gated{votes: []error{refused, nil}}
	if err := newWitness(g, stands).RequestVote("b", "b", nil, nil); !errors.Is(err, refused) {
		t.Errorf("another error: %v", err)
	}
}

type fakeFuture struct {
	raft.ApplyFuture
	index uint64
}

func (f fakeFuture) Index() uint64 { return f.index }

func TestOnlyErrorsWithoutAnIndexAreCertain(t *testing.T) {
	for _, c := range []struct {
		err   error
		index uint64
		want  error
	}{
		{raft.ErrNotLeader, 0, lease.ErrUnavailable},
		{raft.ErrLeadershipTransferInProgress, 0, lease.ErrUnavailable},
		{raft.ErrEnqueueTimeout, 0, lease.ErrUnavailable},
		{raft.ErrNotLeader, 9, lease.ErrOutcomeUnknown},
		{raft.ErrLeadershipLost, 0, lease.ErrOutcomeUnknown},
		{raft.ErrLeadershipLost, 9, lease.ErrOutcomeUnknown},
		{raft.ErrRaftShutdown, 0, lease.ErrOutcomeUnknown},
		{raft.ErrRaftShutdown, 9, lease.ErrOutcomeUnknown},
		{io.ErrShortWrite, 9, lease.ErrOutcomeUnknown},
		{errNoAnswer, 0, lease.ErrOutcomeUnknown},
	} {
		if err := sortError(c.err, fakeFuture{index: c.index}); !errors.Is(err, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%v with index %d: %v", c.err, c.index, err)
		}
	}
}
