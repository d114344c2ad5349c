package fsm_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// began is the wall time of every test's opening, and so its clock's beginning.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine is an FSM and the end of its log.
type machine struct {
	*fsm.FSM
	t     testing.TB
	index uint64
	term  uint64
	// since is how long after began the next batch is read.
	since time.Duration
	// failures are what OnFailure was told.
	failures []error
}

// newMachine returns an FSM without any entry.
func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{t: t, term: 1}
	f, err := fsm.Open(fsm.Config{Dir: t.TempDir(), OnFailure: func(err error) { m.failures = append(m.failures, err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	m.FSM = f
	return m
}

// openMachine returns an FSM with an opening entry.
func openMachine(t testing.TB, settings fsm.Settings) *machine {
	t.Helper()
	m := newMachine(t)
	m.log(fsm.EncodeOpening(fsm.Opening{Wall: began, Settings: settings}))
	return m
}

func (m *machine) entry(data []byte) *raft.Log {
	m.index++
	return &raft.Log{Index: m.index, Term: m.term, Type: raft.LogCommand, Data: data}
}

func (m *machine) log(data []byte) any { return m.Apply(m.entry(data)) }

func (m *machine) stamp() fsm.Stamp {
	return fsm.Stamp{Reading: instant(m.since), Term: m.term, Wall: began.Add(m.since)}
}

func batch(stamp fsm.Stamp, mutations ...lease.Mutation) []byte {
	bodies := make([][]byte, len(mutations))
	for i, mutation := range mutations {
		bodies[i] = fsm.EncodeMutation(mutation)
	}
	return fsm.EncodeBatch(stamp, bodies)
}

// do applies mutations as one batch.
func (m *machine) do(mutations ...lease.Mutation) []lease.Outcome {
	m.t.Helper()
	response := m.log(batch(m.stamp(), mutations...))
	outcomes, ok := response.([]lease.Outcome)
	if !ok || len(outcomes) != len(mutations) {
		m.t.Fatalf("entry %d: %v", m.index, response)
	}
	return outcomes
}

// must applies one mutation that has to succeed.
func (m *machine) must(mutation lease.Mutation) lease.Answer {
	m.t.Helper()
	outcome := m.do(mutation)[0]
	if outcome.Err != nil {
		m.t.Fatal(outcome.Err)
	}
	return outcome.Answer
}

func (m *machine) get(key string) fsm.View {
	m.t.Helper()
	view, err := m.Get(key)
	if err != nil {
		m.t.Fatal(err)
	}
	return view
}

// history returns all of a key's history, or of all keys', by pages of limit.
func (m *machine) history(key string, limit int) []lease.Entry {
	m.t.Helper()
	var entries []lease.Entry
	q := fsm.HistoryQuery{Key: key, Limit: limit}
	for {
		view, err := m.History(q)
		if err != nil {
			m.t.Fatal(err)
		}
		entries = append(entries, view.Entries...)
		if !view.More {
			return entries
		}
		if view.Next == q.After {
			m.t.Fatalf("the page after %v leads nowhere", q.After)
		}
		q.After = view.Next
	}
}

// sink is a raft.SnapshotSink in memory.
type sink struct {
	bytes.Buffer
	closed, cancelled bool
}

func (*sink) ID() string      { return "sink" }
func (s *sink) Close() error  { s.closed = true; return nil }
func (s *sink) Cancel() error { s.cancelled = true; return nil }

// snapshot returns the snapshot of the state as it is.
func (m *machine) snapshot() []byte {
	m.t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		m.t.Fatal(err)
	}
	defer s.Release()
	var to sink
	if err := s.Persist(&to); err != nil {
		m.t.Fatal(err)
	}
	if !to.closed || to.cancelled {
		m.t.Fatal("the sink was not closed")
	}
	return to.Bytes()
}

func (m *machine) restore(snapshot []byte) error {
	return m.Restore(io.NopCloser(bytes.NewReader(snapshot)))
}

// restored returns another machine with m's state, by way of a snapshot.
func (m *machine) restored() *machine {
	m.t.Helper()
	other := newMachine(m.t)
	if err := other.restore(m.snapshot()); err != nil {
		m.t.Fatal(err)
	}
	other.index, other.term, other.since = m.index, m.term, m.since
	return other
}

func (m *machine) lastDigest() fsm.Digest {
	digests := m.Digests()
	return digests[len(digests)-1]
}

func instant(since time.Duration) lease.Instant {
	return lease.Instant(began.UnixNano()).Add(since)
}

func acquire(key, owner, requestID string, ttl time.Duration) lease.Mutation {
	return lease.AcquireRequest{Key: key, Owner: owner, TTL: ttl, RequestID: requestID}.Mutation()
}

func renew(key, owner string, epoch uint64, ttl time.Duration) lease.Mutation {
	return lease.RenewRequest{Key: key, Owner: owner, Epoch: epoch, TTL: ttl}.Mutation()
}

func release(key, owner string, epoch uint64) lease.Mutation {
	return lease.ReleaseRequest{Key: key, Owner: owner, Epoch: epoch}.Mutation()
}

func forget(key, owner string, epoch uint64) lease.Mutation {
	return lease.ForgetRequest{Key: key, Owner: owner, Epoch: epoch}.Mutation()
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has changed:\n got %q\nwant %q", path, got, want)
	}
}
