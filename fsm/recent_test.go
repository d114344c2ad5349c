package fsm_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

func TestWhatWasAppliedIsSeenBeforeItIsInTheStateFile(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.do(acquire("a", "x", "", time.Minute))
	checkUncommitted := func(when string, want int) {
		t.Helper()
		if got := m.Uncommitted(); got != want {
			t.Errorf("%s %d records are not in the state file, want %d", when, got, want)
		}
	}
	for name, look := range map[string]func() (lease.Record, error){
		"get": func() (lease.Record, error) {
			view, err := m.Get("a")
			checkUncommitted("after a get", 1)
			return view.Record, err
		},
		"list": func() (lease.Record, error) {
			view, err := m.List(fsm.ListQuery{})
			if err != nil || len(view.Records) != 1 {
				return lease.Record{}, fmt.Errorf("%d records, %v", len(view.Records), err)
			}
			checkUncommitted("after a list", 0)
			return view.Records[0], nil
		},
		"snapshot": func() (lease.Record, error) {
			other := newMachine(t)
			if err := other.restore(m.snapshot()); err != nil {
				return lease.Record{}, err
			}
			checkUncommitted("after a snapshot", 0)
			view, err := other.Get("a")
			return view.Record, err
		},
		"history": func() (lease.Record, error) {
			view, err := m.History(fsm.HistoryQuery{})
			if err != nil || len(view.Entries) == 0 {
				return lease.Record{}, fmt.Errorf("%d entries, %v", len(view.Entries), err)
			}
			last := view.Entries[len(view.Entries)-1]
			return lease.Record{Key: last.Key, Owner: last.Owner, Epoch: last.Epoch}, nil
		},
	} {
		m.do(release("a", m.mustGet("a").Owner, m.mustGet("a").Epoch))
		m.do(acquire("a", name, "", time.Minute))
		want := m.mustGet("a").Epoch
		if r, err := look(); err != nil || r.Owner != name || r.Epoch != want {
			t.Errorf("%s shows %+v, %v; want epoch %d of %q", name, r, err, want, name)
		}
	}
}

func (m *machine) mustGet(key string) lease.Record {
	view, err := m.Get(key)
	if err != nil {
		panic(err)
	}
	return view.Record
}

func TestTheStateFileIsNeverFarBehind(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	highest := 0
	for i := range 3000 {
		m.do(acquire(fmt.Sprint("k", i), "x", "", time.Minute))
		highest = max(highest, m.Uncommitted())
	}
	if highest < 500 || highest > 1024 {
		t.Errorf("up to %d records were not in the state file", highest)
	}
	long := map[string]string{"a": string(make([]byte, 1000))}
	for i := range 20_000 {
		r := acquire(fmt.Sprint("k", i%10), "y", "", time.Minute)
		r.Attributes = long
		m.do(r) // is refused, and is an entry all the same
		m.do(release(fmt.Sprint("k", i%10), "x", 1))
		if m.Uncommitted() == 0 && i > 10 {
			return
		}
	}
	t.Error("entries of 20 MB are kept for ten records")
}

func TestACommitThatFailsLatches(t *testing.T) {
	for name, meet := range map[string]func(m *machine) error{
		"a list":     func(m *machine) error { _, err := m.List(fsm.ListQuery{}); return err },
		"a history":  func(m *machine) error { _, err := m.History(fsm.HistoryQuery{}); return err },
		"a snapshot": func(m *machine) error { _, err := m.Snapshot(); return err },
		"verifying":  func(m *machine) error { _, err := m.Verify(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			m := openMachine(t, fsm.Settings{})
			m.do(acquire("a", "x", "", time.Minute))
			if err := m.BreakCommit(); err != nil {
				t.Fatal(err)
			}
			if view, err := m.Get("a"); err != nil || view.Record.Owner != "x" {
				t.Errorf("before: %+v, %v", view, err)
			}
			if err := meet(m); err == nil {
				t.Error("no error")
			}
			if err := meet(m); err == nil {
				t.Error("no error the second time: it shows what was before the last entries")
			}
			checkLatched(t, m, []any{m.log(batch(m.stamp()))})
		})
	}
}

// A reader must not see a key go back, whether the state file has it or not.
func TestReadersNeverGoBackAcrossCommitsAndRestores(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.do(acquire("k", "x", "", time.Minute))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var last fsm.View
			for {
				select {
				case <-done:
					return
				default:
				}
				view, err := m.Get("k")
				if err != nil || view.Record.Epoch < last.Record.Epoch || view.Now < last.Now {
					t.Errorf("after %+v came %+v, %v", last, view, err)
					return
				}
				last = view
			}
		})
	}
	readers.Go(func() {
		var last uint64
		for {
			select {
			case <-done:
				return
			default:
			}
			applied := m.AppliedIndex()
			view, err := m.List(fsm.ListQuery{})
			if err != nil || view.Index < last || view.Index < applied {
				t.Errorf("applied was %d, and the list is of %d after %d, %v", applied, view.Index, last, err)
				return
			}
			last = view.Index
		}
	})
	for epoch := range uint64(600) {
		m.do(release("k", "x", epoch+1), acquire("k", "x", "", time.Minute))
		if epoch%100 == 99 {
			if err := m.restore(m.snapshot()); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(done)
	readers.Wait()
	if epoch := m.mustGet("k").Epoch; epoch != 601 {
		t.Errorf("epoch %d, want 601", epoch)
	}
}

func TestClosingLetsGoOfWhatIsNotCommitted(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.do(acquire("a", "x", "", time.Minute))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Get("a"); !errors.Is(err, fsm.ErrClosed) {
		t.Errorf("a get after closing: %v", err)
	}
}

func TestWhatCameBeforeAnEntryThatIsNotUnderstoodCanBeRead(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.do(acquire("a", "x", "", time.Minute))
	m.log([]byte("of a newer version"))
	checkLatched(t, m, nil)
	census, err := m.Verify()
	if err != nil || census.Keys != 1 {
		t.Errorf("verified %+v, %v", census, err)
	}
}
