package fsm_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

func keysOf(view fsm.ListView) string {
	var keys []string
	for _, r := range view.Records {
		keys = append(keys, r.Key)
	}
	return strings.Join(keys, " ")
}

func TestListPages(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	for _, key := range []string{"a", "b1", "b2", "b3", "b4", "c"} {
		m.must(acquire(key, "owner", "", time.Second))
	}
	m.must(release("b2", "owner", 1))
	m.must(release("b3", "owner", 1))
	for name, c := range map[string]struct {
		query fsm.ListQuery
		keys  string
		next  string
		more  bool
	}{
		"all":                  {fsm.ListQuery{}, "a b1 b2 b3 b4 c", "c", false},
		"prefix":               {fsm.ListQuery{Prefix: "b"}, "b1 b2 b3 b4", "b4", false},
		"limit":                {fsm.ListQuery{Prefix: "b", Limit: 2}, "b1 b2", "b2", true},
		"limit at the end":     {fsm.ListQuery{Prefix: "b", Limit: 4}, "b1 b2 b3 b4", "b4", false},
		"after":                {fsm.ListQuery{Prefix: "b", After: "b2", Limit: 1}, "b3", "b3", true},
		"after no key":         {fsm.ListQuery{Prefix: "b", After: "b11"}, "b2 b3 b4", "b4", false},
		"after before prefix":  {fsm.ListQuery{Prefix: "b", After: "a"}, "b1 b2 b3 b4", "b4", false},
		"after the last":       {fsm.ListQuery{Prefix: "b", After: "b4"}, "", "b4", false},
		"bytes":                {fsm.ListQuery{MaxBytes: 13}, "a b1", "b1", true},
		"bytes of one":         {fsm.ListQuery{MaxBytes: 1}, "a", "a", true},
		"held":                 {fsm.ListQuery{Selection: lease.HeldOnly, Prefix: "b"}, "b1 b4", "b4", false},
		"examined":             {fsm.ListQuery{Selection: lease.HeldOnly, MaxExamined: 3}, "a b1", "b2", true},
		"examined and no hits": {fsm.ListQuery{Selection: lease.HeldOnly, After: "b1", MaxExamined: 2}, "", "b3", true},
		"no such prefix":       {fsm.ListQuery{Prefix: "x"}, "", "", false},
	} {
		view, err := m.List(c.query)
		if err != nil || keysOf(view) != c.keys || view.Next != c.next || view.More != c.more || view.Now != instant(0) {
			t.Errorf("%s: got %q next %q more %v, %v", name, keysOf(view), view.Next, view.More, err)
		}
	}
}

func TestHistoryPages(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.do(acquire("a", "owner", "", time.Second), acquire("b", "owner", "", time.Second), renew("a", "owner", 1, 2*time.Second), release("a", "owner", 1))
	for name, c := range map[string]struct {
		query fsm.HistoryQuery
		ops   string
		next  uint32
		more  bool
	}{
		"all":              {fsm.HistoryQuery{}, "acquire acquire renew release", 3, false},
		"limit":            {fsm.HistoryQuery{Limit: 3}, "acquire acquire renew", 2, true},
		"after":            {fsm.HistoryQuery{After: fsm.Position{Index: 2, Ordinal: 1}}, "renew release", 3, false},
		"after the last":   {fsm.HistoryQuery{After: fsm.Position{Index: 2, Ordinal: 3}}, "", 3, false},
		"key":              {fsm.HistoryQuery{Key: "a"}, "acquire renew release", 3, false},
		"key, limit":       {fsm.HistoryQuery{Key: "a", Limit: 2}, "acquire renew", 2, true},
		"key, after":       {fsm.HistoryQuery{Key: "a", After: fsm.Position{Index: 2, Ordinal: 1}}, "renew release", 3, false},
		"key, bytes":       {fsm.HistoryQuery{Key: "a", MaxBytes: 12}, "acquire renew", 2, true},
		"key, bytes of 1":  {fsm.HistoryQuery{Key: "a", MaxBytes: 1}, "acquire", 0, true},
		"bytes":            {fsm.HistoryQuery{MaxBytes: 12}, "acquire acquire", 1, true},
		"key without":      {fsm.HistoryQuery{Key: "c"}, "", 0, false},
		"key at its last":  {fsm.HistoryQuery{Key: "b", Limit: 1}, "acquire", 1, false},
		"all at the limit": {fsm.HistoryQuery{Limit: 4}, "acquire acquire renew release", 3, false},
	} {
		view, err := m.History(c.query)
		var ops []string
		for _, e := range view.Entries {
			ops = append(ops, e.Op.String())
		}
		if got := strings.Join(ops, " "); err != nil || got != c.ops || view.Next.Ordinal != c.next || view.More != c.more {
			t.Errorf("%s: got %q next %v more %v, %v", name, got, view.Next, view.More, err)
		}
	}
	for i, e := range m.history("", 1) {
		want := lease.Entry{Index: 2, Op: e.Op, Key: []string{"a", "b", "a", "a"}[i], Owner: "owner", Epoch: 1, At: instant(0), Wall: began}
		if e != want {
			t.Errorf("entry %d: got %v, want %v", i, e, want)
		}
	}
}

func TestAPageOfHistoryEndsWhereKeysHaveForgotten(t *testing.T) {
	m := openMachine(t, fsm.Settings{HistoryRenewals: 1})
	m.must(acquire("k", "x", "", time.Second))
	renewals := make([]lease.Mutation, 1000)
	for range 9 {
		for i := range renewals {
			// Each one moves the end by a little.
			renewals[i] = renew("k", "x", 1, time.Second+time.Duration(m.index)*time.Second+time.Duration(i)*time.Millisecond)
		}
		m.do(renewals...)
	}
	view, err := m.History(fsm.HistoryQuery{})
	if err != nil || len(view.Entries) != 1 || !view.More {
		t.Errorf("%d entries, more %v, %v", len(view.Entries), view.More, err)
	}
	if all := m.history("", 10); len(all) != 2 {
		t.Errorf("in all: %v", all)
	}
}

// TestViewsRunBesideEverything reads from several goroutines while entries are
// applied and snapshots taken and restored. What each sees is one state.
func TestViewsRunBesideEverything(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	const pairs = 20
	// Both keys of a pair are granted by one entry, so they are equal in every state.
	step := func() {
		m.since += time.Second
		var mutations []lease.Mutation
		for i := range pairs {
			mutations = append(mutations, acquire(fmt.Sprintf("left-%02d", i), "x", "", time.Second), acquire(fmt.Sprintf("right-%02d", i), "x", "", time.Second))
		}
		m.do(mutations...)
	}
	step()
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if fault := lookAround(m.FSM, pairs); fault != nil {
					t.Error(fault)
					return
				}
			}
		})
	}
	for i := range 100 {
		step()
		if i%20 == 19 {
			if err := m.restore(m.snapshot()); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	readers.Wait()
}

func lookAround(f *fsm.FSM, pairs int) error {
	if digests := f.Digests(); digests[len(digests)-1].Index > f.AppliedIndex() || f.Keys() != uint64(2*pairs) {
		return fmt.Errorf("%d keys, and a digest of the future", f.Keys())
	}
	if now, end := f.Clock(); end < now {
		return fmt.Errorf("the latest end %d is before now %d", end, now)
	}
	view, err := f.List(fsm.ListQuery{})
	if err != nil || len(view.Records) != 2*pairs {
		return fmt.Errorf("%d records, %w", len(view.Records), err)
	}
	if i := slices.IndexFunc(view.Records, func(r lease.Record) bool { return r.Epoch != view.Records[0].Epoch }); i >= 0 {
		return fmt.Errorf("%v beside %v", view.Records[i], view.Records[0])
	}
	one, err := f.Get("left-00")
	if err != nil || one.Record.LeaseUntil != one.Now.Add(time.Second) {
		return fmt.Errorf("%v at %d, %w", one.Record, one.Now, err)
	}
	_, err = f.History(fsm.HistoryQuery{Limit: 50})
	return err
}
