package fsm_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

func TestOpenStartsEmptyAndCloseLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fsm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state-1.db", "state-7.db"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("of an earlier life"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fsm.Open(fsm.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if f.AppliedIndex() != 0 || f.Keys() != 0 || len(f.Digests()) != 0 {
		t.Error("it is not empty")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := f.Get("k"); !errors.Is(err, fsm.ErrClosed) {
		t.Errorf("get: %v", err)
	}
	if _, err := f.Snapshot(); !errors.Is(err, fsm.ErrClosed) {
		t.Errorf("snapshot: %v", err)
	}
	response := f.Apply(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration})
	if err, ok := response.(error); !ok || !errors.Is(err, fsm.ErrClosed) {
		t.Errorf("apply: %v", response)
	}
}

func TestResponses(t *testing.T) {
	m := newMachine(t)
	m.term = 3
	configuration := &raft.Log{Index: 1, Term: 3, Type: raft.LogConfiguration, Data: []byte("raft's own")}
	m.index = 1
	stale := m.stamp()
	stale.Term = 2
	got := m.ApplyBatch([]*raft.Log{
		configuration,
		m.entry(fsm.EncodeOpening(fsm.Opening{Wall: began})),
		m.entry(batch(m.stamp())),
		m.entry(batch(stale, acquire("k", "x", "", time.Second))),
		m.entry(batch(m.stamp(), acquire("k", "x", "", time.Second))),
	})
	record := lease.Record{Key: "k", Owner: "x", Epoch: 1, LeaseUntil: instant(time.Second)}
	want := []any{
		nil,
		fsm.Opened{Term: 3, Now: instant(0)},
		[]lease.Outcome{},
		&fsm.TermError{Entry: 2, Log: 3},
		[]lease.Outcome{{Answer: lease.Answer{Record: record, Now: instant(0), Remaining: time.Second, Changed: true}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if m.AppliedIndex() != 5 {
		t.Errorf("applied index %d", m.AppliedIndex())
	}
}

func TestABatchOfAnotherTermChangesNothing(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.must(acquire("k", "x", "", time.Second))
	m.since = time.Hour
	stamp := m.stamp()
	m.term = 2
	for _, stamp.Term = range []uint64{1, 3} {
		response := m.log(batch(stamp, acquire("k", "y", "", time.Second), acquire("j", "y", "", time.Second)))
		if want := (&fsm.TermError{Entry: stamp.Term, Log: 2}); !reflect.DeepEqual(response, want) {
			t.Errorf("got %v, want %v", response, want)
		}
	}
	now, end := m.Clock()
	if now != instant(0) || end != instant(time.Second) || m.Keys() != 1 || m.get("k").Record.Epoch != 1 || m.AppliedIndex() != m.index {
		t.Errorf("now %d, latest end %d, %d keys, %v", now, end, m.Keys(), m.get("k"))
	}
}

func TestOnlyTheFirstOpeningSetsClockAndSettings(t *testing.T) {
	m := openMachine(t, fsm.Settings{MaxKeys: 1})
	m.since = time.Second
	m.do()
	m.term = 2
	opened := m.log(fsm.EncodeOpening(fsm.Opening{Wall: began.Add(time.Hour), Settings: fsm.Settings{MaxKeys: 2}}))
	if want := (fsm.Opened{Term: 2, Now: instant(time.Second)}); opened != want {
		t.Errorf("got %v, want %v", opened, want)
	}
	m.must(acquire("k", "x", "", time.Second))
	var exhausted *lease.ExhaustedError
	if err := m.do(acquire("j", "x", "", time.Second))[0].Err; !errors.As(err, &exhausted) || *exhausted != (lease.ExhaustedError{Resource: "keys", Limit: 1, Key: "j"}) {
		t.Errorf("got %v", err)
	}
}

func TestClockTellsTheLatestEndEverSet(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.must(acquire("k", "x", "", time.Minute))
	m.must(renew("k", "x", 1, time.Hour))
	m.must(release("k", "x", 1))
	if now, end := m.Clock(); now != instant(0) || end != instant(time.Hour) {
		t.Errorf("now %d, latest end %d", now, end)
	}
}

// bad are entries that must stop the node, with what their error has to be.
func bad(m *machine) map[string]func() *raft.Log {
	return map[string]func() *raft.Log{
		"newer": func() *raft.Log { return m.entry([]byte{fsm.EntryVersion + 1, 1}) },
		"corrupt": func() *raft.Log {
			data := batch(m.stamp(), acquire("bad", "x", "", time.Second), release("good", "x", 1))
			return m.entry(data[:len(data)-1])
		},
		"repeated": func() *raft.Log {
			return &raft.Log{Index: m.index, Term: m.term, Type: raft.LogCommand, Data: batch(m.stamp(), acquire("bad", "x", "", time.Second))}
		},
	}
}

func TestAnEntryThatIsNotUnderstoodLatchesAndLosesNothingBeforeIt(t *testing.T) {
	for name := range bad(nil) {
		t.Run(name, func(t *testing.T) {
			m := openMachine(t, fsm.Settings{})
			good := m.entry(batch(m.stamp(), acquire("good", "x", "", time.Second)))
			applied := m.index
			stop := bad(m)[name]()
			after := m.entry(batch(m.stamp(), acquire("after", "x", "", time.Second)))
			got := m.ApplyBatch([]*raft.Log{good, stop, after})
			if outcomes, ok := got[0].([]lease.Outcome); !ok || outcomes[0].Err != nil {
				t.Errorf("the entry before it: %v", got[0])
			}
			checkLatched(t, m, got[1:])
			if m.AppliedIndex() != applied || m.Keys() != 1 || m.get("good").Record.Epoch != 1 || m.lastDigest().Index != applied {
				t.Errorf("applied index %d, %d keys", m.AppliedIndex(), m.Keys())
			}
		})
	}
}

// checkLatched looks whether responses, and everything that is asked from now on,
// are the one error that OnFailure was told.
func checkLatched(t *testing.T, m *machine, responses []any) {
	t.Helper()
	if len(m.failures) != 1 {
		t.Fatalf("OnFailure was told %v", m.failures)
	}
	want := m.failures[0]
	responses = append(responses, m.log(batch(m.stamp())))
	_, err := m.Snapshot()
	responses = append(responses, err, m.restore(nil))
	for i, response := range responses {
		err, ok := response.(error)
		if !ok || !errors.Is(err, want) {
			t.Errorf("response %d is %v, want %v", i, response, want)
		}
	}
	if len(m.failures) != 1 {
		t.Errorf("OnFailure was told again: %v", m.failures)
	}
}

func TestAFailureOfTheStateFileLatches(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	if err := m.BreakStateFile(); err != nil {
		t.Fatal(err)
	}
	checkLatched(t, m, []any{m.log(batch(m.stamp()))})
	if m.AppliedIndex() != 1 {
		t.Errorf("applied index %d", m.AppliedIndex())
	}
}

func TestABatchWithoutAClockLatches(t *testing.T) {
	m := newMachine(t)
	response := m.log(batch(m.stamp(), acquire("k", "x", "", time.Second)))
	var broken *fsm.InvariantError
	if err, ok := response.(error); !ok || !errors.As(err, &broken) {
		t.Errorf("got %v", response)
	}
	checkLatched(t, m, nil)
}

func TestDigestsAreKeptAtMultiplesAndAtTheEnd(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	for m.index < 64*70+20 {
		m.do()
	}
	digests := m.Digests()
	if len(digests) != 64 || digests[63].Index != m.index {
		t.Fatalf("%d digests, the last of %d", len(digests), digests[len(digests)-1].Index)
	}
	for i, d := range digests {
		want := uint64(64 * (23 + i))
		if i >= 48 {
			want = m.index - 63 + uint64(i)
		}
		if d.Index != want {
			t.Errorf("digest %d is of %d, want %d", i, d.Index, want)
		}
	}
	m.do()
	if m.lastDigest().Sum == digests[63].Sum {
		t.Error("the index is not in the digest")
	}
}
