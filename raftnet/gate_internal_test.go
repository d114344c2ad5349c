package raftnet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// inlet is a transport into which the test puts what comes in.
type inlet struct {
	Transport
	in chan raft.RPC
}

func (i *inlet) Consumer() <-chan raft.RPC { return i.in }
func (i *inlet) Close() error              { return nil }

// inGate runs a test on a gate, with the test in raft's place behind it.
func inGate(t *testing.T, test func(t *testing.T, in chan raft.RPC, g *gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		in := make(chan raft.RPC)
		g := newGate(newWitness(&inlet{in: in}, stands), 5)
		test(t, in, g)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

func offered(g *gate, forbidden func() string) <-chan string {
	result := make(chan string, 1)
	go func() { result <- g.offer(raft.RPCHeader{}, forbidden) }()
	return result
}

// done has raft answer.
func done(rpc raft.RPC) { rpc.Respond(&raft.AppendEntriesResponse{}, nil) }

func allowed() string { return "" }

// What forbids it is asked only when raft has done what came in before.
func TestGateAsksWhatForbidsItWhenRaftIsDone(t *testing.T) {
	inGate(t, func(t *testing.T, in chan raft.RPC, g *gate) {
		busy, asked := true, false
		result := offered(g, func() string {
			asked = true
			if busy {
				t.Error("asked while raft was at work")
			}
			return "no"
		})
		settle := <-g.Consumer()
		if c, ok := settle.Command.(*raft.AppendEntriesRequest); !ok || c.Term != 0 || len(c.Entries) != 0 {
			t.Errorf("raft was given %+v first", settle.Command)
		}
		synctest.Wait()
		if asked {
			t.Error("it was not waited for raft")
		}
		busy = false
		settle.Respond(&raft.AppendEntriesResponse{}, nil)
		if reason := <-result; reason != "no" {
			t.Errorf("%q", reason)
		}
	})
}

// A request for a vote that waits when raft would be told goes first, and counts.
func TestGateLetsInWhatWaitsFirst(t *testing.T) {
	inGate(t, func(t *testing.T, in chan raft.RPC, g *gate) {
		voted := false
		result := offered(g, func() string {
			if !voted {
				return ""
			}
			return "it has voted"
		})
		settle := <-g.Consumer()
		go func() { in <- raft.RPC{Command: &raft.RequestVoteRequest{Term: 9}} }()
		synctest.Wait()
		settle.Respond(&raft.AppendEntriesResponse{}, nil)
		if vote, ok := (<-g.Consumer()).Command.(*raft.RequestVoteRequest); !ok || vote.Term != 9 {
			t.Error("the request did not come first")
		}
		voted = true
		again := <-g.Consumer()
		again.Respond(&raft.AppendEntriesResponse{}, nil)
		if reason := <-result; reason != "it has voted" {
			t.Errorf("%q", reason)
		}
	})
}

// What was true before raft was busy need not be true after: it is not told then.
func TestGateGivesUpOnABusyRaft(t *testing.T) {
	inGate(t, func(t *testing.T, in chan raft.RPC, g *gate) {
		began := time.Now()
		if reason := <-offered(g, allowed); reason != "raft is busy" || time.Since(began) > time.Second {
			t.Errorf("raft takes nothing: %q after %v", reason, time.Since(began))
		}
		result := offered(g, allowed)
		<-g.Consumer() // and never answers
		if reason := <-result; reason != "raft is busy" {
			t.Errorf("raft does not answer: %q", reason)
		}
		result = offered(g, allowed)
		done(<-g.Consumer())
		if reason := <-result; reason != "raft is busy" {
			t.Errorf("raft does not take it: %q", reason)
		}
		go func() { in <- raft.RPC{Command: &raft.RequestVoteRequest{Term: 9}} }()
		if _, ok := (<-g.Consumer()).Command.(*raft.RequestVoteRequest); !ok {
			t.Error("something else than what came in comes out")
		}
	})
}

func TestGateHandsInWhatIsAllowed(t *testing.T) {
	inGate(t, func(t *testing.T, in chan raft.RPC, g *gate) {
		result := offered(g, allowed)
		done(<-g.Consumer())
		if _, ok := (<-g.Consumer()).Command.(*raft.TimeoutNowRequest); !ok {
			t.Error("raft was not told")
		}
		if reason := <-result; reason != "" {
			t.Errorf("%q", reason)
		}
	})
}

func TestGateNotesWhatComesIn(t *testing.T) {
	inGate(t, func(t *testing.T, in chan raft.RPC, g *gate) {
		come := func(command any) {
			in <- raft.RPC{Command: command}
			<-g.Consumer()
		}
		id := func(id string) raft.RPCHeader { return raft.RPCHeader{ID: []byte(id)} }
		come(&raft.AppendEntriesRequest{RPCHeader: id("a"), Term: 3, Entries: []*raft.Log{{Index: 9}, {Index: 7, Type: raft.LogConfiguration}}})
		come(&raft.AppendEntriesRequest{RPCHeader: id("old"), Term: 2})
		if n := g.noted(); n.leader != (reigning{"a", 3}) || n.members != 7 {
			t.Errorf("%+v", n)
		}
		come(&raft.InstallSnapshotRequest{RPCHeader: id("b"), Term: 4})
		come(&raft.RequestVoteRequest{RPCHeader: id("c"), Term: 5})
		if n := g.noted(); n != (seen{leader: reigning{"b", 4}, members: 7}) {
			t.Errorf("%+v", n)
		}
	})
}

func TestPacedLogTellsItsSlowWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pacedLog{LogStore: napping{}}
		if l.slow() != 0 {
			t.Error("before the first")
		}
		for i := range 1000 {
			if err := l.StoreLog(&raft.Log{Index: uint64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.slow(); got != 998*time.Millisecond {
			t.Errorf("%v", got)
		}
	})
}

// napping is a log whose writes take as many milliseconds as their index says.
type napping struct{ raft.LogStore }

func (napping) StoreLogs(logs []*raft.Log) error {
	time.Sleep(time.Duration(logs[0].Index) * time.Millisecond)
	return nil
}
