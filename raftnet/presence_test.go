package raftnet_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/raftnet"
)

// accepting has who accepts raft connections read them, as raft does.
func (p *peer) accepting(t *testing.T) {
	lane := p.port.Listener(raftnet.PurposeRaft)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := lane.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 1))
			}()
		}
	}()
	t.Cleanup(func() { _ = lane.Close(); <-done })
}

// sees polls until from is connected to p or not, as wanted.
func (p *peer) sees(t *testing.T, from string, want bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for p.port.Connected(from) != want {
		if time.Now().After(deadline) {
			t.Fatalf("connected: %v, want %v", !want, want)
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *peer) lost(t *testing.T) {
	t.Helper()
	select {
	case <-p.port.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("no signal that the last connection has closed")
	}
}

func mustDial(t *testing.T, from *peer, to string, purpose raftnet.Purpose) net.Conn {
	t.Helper()
	conn, err := from.port.Dial(within(t, 10*time.Second), to, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestAPortKnowsWhoIsConnected(t *testing.T) {
	ps := newPeers(t, "n1", "n2")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2)
	n1.accepting(t)
	other := mustDial(t, n2, "n1", raftnet.PurposeCall)
	defer other.Close()
	first, second := mustDial(t, n2, "n1", raftnet.PurposeRaft), mustDial(t, n2, "n1", raftnet.PurposeRaft)
	n1.sees(t, "n2", true)
	_ = first.Close()
	select {
	case <-n1.port.Lost():
		t.Error("lost, though one of two is left")
	case <-time.After(50 * time.Millisecond): // to see that it does not come
	}
	n1.sees(t, "n2", true)
	_ = second.Close()
	n1.lost(t)
	n1.sees(t, "n2", false)
}

// A connection that an earlier process of the peer made, and that nobody has closed, does
// not count once a later one was met.
func TestAHalfOpenConnectionOfAnEarlierStartDoesNotCount(t *testing.T) {
	ps := newPeers(t, "n1", "n2")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2)
	n1.accepting(t)
	halfOpen := mustDial(t, n2, "n1", raftnet.PurposeRaft)
	defer halfOpen.Close()
	n1.sees(t, "n2", true)
	n2.close()
	n1.sees(t, "n2", true) // the port has not made it, and does not close it
	n2 = ps.open("n2", n2.dir)
	met := mustDial(t, n2, "n1", raftnet.PurposeCall)
	defer met.Close()
	n1.lost(t)
	n1.sees(t, "n2", false)
	again := mustDial(t, n2, "n1", raftnet.PurposeRaft)
	defer again.Close()
	n1.sees(t, "n2", true)
}

func TestQuestions(t *testing.T) {
	ps := newPeers(t, "n1", "n2")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2)
	ask := func(about string) (raftnet.Finding, error) {
		return n1.port.Ask(within(t, 10*time.Second), "n2", raftnet.Question{Leader: about, Term: 7})
	}
	if f, err := ask("n2"); err != nil || f.Verdict != raftnet.Gone {
		t.Errorf("a node that is starting, about itself: %+v, %v", f, err)
	}
	if f, err := ask("n3"); err != nil || f.Verdict != raftnet.Unclear || f.Stands {
		t.Errorf("a node that is starting, about another: %+v, %v", f, err)
	}
	want := raftnet.Finding{Verdict: raftnet.Alive, LastTerm: 6, LastIndex: 1 << 60, Stands: true}
	n2.port.Answer(func(_ context.Context, q raftnet.Question) raftnet.Finding {
		if q != (raftnet.Question{Leader: "n3", Term: 7}) {
			t.Errorf("asked %+v", q)
		}
		return want
	})
	if f, err := ask("n3"); err != nil || f != want {
		t.Errorf("got %+v, %v", f, err)
	}
	n2.close()
	if _, err := ask("n3"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("of a node that is gone: %v", err)
	}
}
