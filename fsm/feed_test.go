package fsm_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
	"pgregory.net/rapid"
)

// eventModel says again, in as few words as possible, which events a log has.
type eventModel struct {
	now    lease.Instant
	live   map[string]lease.Record
	events []lease.Event
}

// apply takes in a log entry by what its mutations were answered.
func (m *eventModel) apply(index uint64, now lease.Instant, ops []lease.Mutation, outcomes []lease.Outcome) {
	m.now = max(m.now, now)
	var over []lease.Record
	for key, r := range m.live {
		if r.OverAt(m.now) {
			over = append(over, r)
			delete(m.live, key)
		}
	}
	slices.SortFunc(over, func(a, b lease.Record) int {
		return cmp.Or(cmp.Compare(a.LeaseUntil, b.LeaseUntil), cmp.Compare(a.Key, b.Key))
	})
	for _, r := range over {
		m.events = append(m.events, lease.Event{Kind: lease.Expired, Record: r, Index: index, At: m.now})
	}
	for i, o := range outcomes {
		if o.Err != nil || !o.Answer.Changed {
			continue
		}
		r := o.Answer.Record
		m.events = append(m.events, lease.Event{Kind: lease.EventOf(ops[i].Op), Record: r, Index: index, At: m.now})
		if delete(m.live, r.Key); !r.OverAt(m.now) {
			m.live[r.Key] = r
		}
	}
}

// want returns the events after index of a selection.
func (m *eventModel) want(s feed.Selection, after uint64) (events []lease.Event) {
	for _, e := range m.events {
		if e.Index > after && (s.Renewals || e.Kind != lease.Renewed) && (s.Key == "" && len(e.Record.Key) >= len(s.Prefix) && e.Record.Key[:len(s.Prefix)] == s.Prefix || s.Key == e.Record.Key) {
			events = append(events, e)
		}
	}
	return events
}

// reader reads from a feed; a test makes it fall behind as it likes.
type feedReader struct {
	*feed.Watcher
	wants  feed.Selection
	after  uint64
	room   int // for the events of more than one entry; 0 for any number
	events []lease.Event
	index  uint64
}

func watchFeed(t testing.TB, m *machine, wants feed.Selection, after uint64) *feedReader {
	t.Helper()
	w, err := m.Feed().Watch(wants, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return &feedReader{Watcher: w, wants: wants, after: after}
}

// readTo reads until everything up to index was read.
func (r *feedReader) readTo(index uint64) error {
	deadline := time.After(20 * time.Second)
	for {
		batch, err := r.NextWithin(cmp.Or(r.room, math.MaxInt))
		if short, ok := errors.AsType[*feed.RoomError](err); ok {
			if batch, err = r.NextWithin(short.Bytes); err == nil && (len(batch.Events) == 0 || batch.Events[0].Index != batch.Events[len(batch.Events)-1].Index) {
				return fmt.Errorf("with room for %d bytes, those of one entry, it read %+v", short.Bytes, batch)
			}
		}
		if err != nil {
			return err
		}
		r.events = append(r.events, batch.Events...)
		if !batch.More {
			if batch.Index < r.index {
				return fmt.Errorf("the index went back from %d to %d", r.index, batch.Index)
			}
			if r.index = batch.Index; r.index >= index {
				return nil
			}
		}
		if len(batch.Events) > 0 || batch.More {
			continue
		}
		select {
		case <-r.Ready():
		case <-time.After(time.Millisecond): // what is not for this watcher does not wake it
		case <-deadline:
			return fmt.Errorf("came to %d, want %d", r.index, index)
		}
	}
}

func drawSelection(t *rapid.T) feed.Selection {
	s := feed.Selection{Renewals: rapid.Bool().Draw(t, "renewals")}
	if rapid.Bool().Draw(t, "one key") {
		s.Key = rapid.SampledFrom([]string{"a", "a/", "b", "c"}).Draw(t, "watched key")
	} else {
		s.Prefix = rapid.SampledFrom([]string{"", "a", "a/", "b"}).Draw(t, "prefix")
	}
	return s
}

// TestEventsAgreeWithTheModel watches one log on a machine from its beginning and on
// another that was restored from a snapshot in the midst, from different places, some
// of the watchers reading all the time and some at the end only.
func TestEventsAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		logs, batches := drawLog(rt)
		one, model := newMachine(t), &eventModel{now: instant(0), live: map[string]lease.Record{}}
		moves := rapid.IntRange(1, len(logs)).Draw(rt, "snapshot after")
		var other *machine
		machines := []*machine{one}
		readers := map[*machine][]*feedReader{}
		join := func(m *machine, after uint64) {
			for range 3 {
				r := watchFeed(t, m, drawSelection(rt), after)
				r.room = rapid.SampledFrom([]int{0, 1, 100, 200, 400}).Draw(rt, "room")
				readers[m] = append(readers[m], r)
			}
		}
		join(one, 0)
		for i, log := range logs {
			if i == moves {
				one.index, one.term = 0, 0
				other = one.restored()
				machines = append(machines, other)
				await(rt, other, one.AppliedIndex())
				join(other, one.AppliedIndex())
			}
			applyToModel(rt, model, one.Apply(log), log, batches)
			if other != nil {
				other.Apply(log)
			}
			for _, m := range machines {
				for n, r := range readers[m] {
					if n != 1 && rapid.Bool().Draw(rt, "read") {
						if err := r.readTo(log.Index); err != nil {
							rt.Fatal(err)
						}
					}
				}
			}
		}
		for _, m := range machines {
			await(rt, m, m.AppliedIndex())
			after := rapid.Uint64Range(readers[m][0].after, m.AppliedIndex()).Draw(rt, "after")
			join(m, after)
			for _, r := range readers[m] {
				if err := r.readTo(m.AppliedIndex()); err != nil {
					rt.Fatal(err)
				}
				if want := model.want(r.wants, r.after); !reflect.DeepEqual(r.events, want) {
					rt.Fatalf("%+v after %d:\n got %+v\nwant %+v", r.wants, r.after, r.events, want)
				}
			}
		}
		for _, m := range machines {
			if err := m.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func applyToModel(t *rapid.T, model *eventModel, response any, log *raft.Log, batches map[uint64][]lease.Mutation) {
	mutations, ok := batches[log.Index]
	if !ok {
		return
	}
	stamp, _, err := fsm.DecodeBatch(log.Data)
	if err != nil {
		t.Fatal(err)
	}
	model.apply(log.Index, stamp.Reading, mutations, response.([]lease.Outcome))
}

// await waits until the feed has come to index.
func await(t interface{ Fatal(...any) }, m *machine, index uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := m.Feed().Await(ctx, index); err != nil {
		t.Fatal(err)
	}
}

// TestManyLeasesEndAtOneInstant has an entry find 200,000 leases over, while others are
// applied behind it that take some of the keys again: applying does not wait, each
// lease is reported with the record that it had, and in order.
func TestManyLeasesEndAtOneInstant(t *testing.T) {
	if testing.Short() {
		t.Skip("grants 200,000 leases")
	}
	const leases, perEntry = 200_000, 2000
	m := openMachine(t, fsm.Settings{})
	key := func(i int) string { return fmt.Sprintf("tenants/%06d", i) }
	for i := range leases / perEntry {
		m.do(mutationsFor(perEntry, func(j int) lease.Mutation { return acquire(key(i*perEntry+j), "x", "", time.Minute) })...)
	}
	await(t, m, m.index)
	all := watchFeed(t, m, feed.Selection{}, m.index)
	one := watchFeed(t, m, feed.Selection{Key: key(leases - 1)}, m.index)
	before := m.index
	m.since = time.Hour
	m.do()
	var slowest time.Duration
	for i := range 100 {
		began := time.Now()
		// The last keys first: the feed comes to them long after they were taken again.
		m.do(acquire(key(leases-1-i), "y", "", time.Minute))
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("the slowest of 100 entries took %v", slowest)
	if behind := m.index - m.Feed().Head().Index; behind == 0 {
		t.Log("the feed has kept up: nothing was taken again before it was reported")
	}
	for _, r := range []*feedReader{all, one} {
		if err := r.readTo(m.index); err != nil {
			t.Fatal(err)
		}
	}
	if len(all.events) != leases+100 || len(one.events) != 2 || one.events[0].Kind != lease.Expired || one.events[1].Kind != lease.Acquired {
		t.Fatalf("%d events of all keys, and of one %+v", len(all.events), one.events)
	}
	for i, e := range all.events[:leases] {
		if e.Kind != lease.Expired || e.Record.Key != key(i) || e.Record.Owner != "x" || e.Record.Epoch != 1 || e.Index != before+1 {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
	if slowest > time.Second {
		t.Errorf("an entry took %v to be applied", slowest)
	}
}

// TestWatcherThatIsTooSlowIsTold fills the ring past a watcher, and holds that one who
// begins again, or at the oldest place, is told what there is.
func TestWatcherThatIsTooSlowIsTold(t *testing.T) {
	f, err := fsm.Open(fsm.Config{Dir: t.TempDir(), Feed: feed.Bounds{Events: 100, Watchers: 4}})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, term: 1, FSM: f}
	defer m.Close()
	m.log(fsm.EncodeOpening(fsm.Opening{Wall: began}))
	slow, idle, renewed := watchFeed(t, m, feed.Selection{}, 1), watchFeed(t, m, feed.Selection{Key: "quiet"}, 1), watchFeed(t, m, feed.Selection{Renewals: true}, 1)
	if err := errors.Join(idle.readTo(1), slow.readTo(1), renewed.readTo(1)); err != nil {
		t.Fatal(err)
	}
	m.must(acquire("k", "o", "", time.Minute))
	for range 300 {
		m.since += time.Millisecond
		m.must(renew("k", "o", 1, time.Minute))
	}
	await(t, m, m.index)
	if err := slow.readTo(m.index); err != nil || len(slow.events) != 1 {
		t.Errorf("renewals have pushed a grant out: %v, %v", slow.events, err)
	}
	if err := renewed.readTo(m.index); !errors.Is(err, feed.ErrTooSlow) {
		t.Errorf("one who wants renewals and did not read: %v", err)
	}
	for range 150 {
		m.must(release("k", "o", m.get("k").Record.Epoch))
		m.must(acquire("k", "o", "", time.Minute))
	}
	await(t, m, m.index)
	if kept := slow.Kept(); !errors.Is(kept, feed.ErrTooSlow) || idle.Kept() != nil {
		t.Errorf("kept for one who did not read: %v, for one whom nothing concerned: %v", kept, idle.Kept())
	}
	if err := slow.readTo(m.index); !errors.Is(err, feed.ErrTooSlow) {
		t.Errorf("one who did not read: %v", err)
	}
	if err := idle.readTo(m.index); err != nil || len(idle.events) > 0 {
		t.Errorf("one whom nothing concerned: %v, %v", idle.events, err)
	}
	_, err = f.Feed().Watch(feed.Selection{}, 1)
	gone, ok := errors.AsType[*feed.GoneError](err)
	if !ok || gone.Oldest != m.index-100 {
		t.Fatalf("got %v, want %d as the oldest", err, m.index-100)
	}
	again := watchFeed(t, m, feed.Selection{}, gone.Oldest)
	if err := again.readTo(m.index); err != nil || len(again.events) != 100 {
		t.Errorf("%d events, %v", len(again.events), err)
	}
	var exhausted *lease.ExhaustedError
	if _, err := f.Feed().Watch(feed.Selection{}, m.index); !errors.As(err, &exhausted) {
		t.Errorf("a watcher too many: %v", err)
	}
}

// TestRestoreAndOverflowBeginAnew holds that watchers are told when the feed has lost
// its place, and that the leases of before still expire.
func TestRestoreAndOverflowBeginAnew(t *testing.T) {
	for name, lose := range map[string]func(m *machine) error{
		"a restore": func(m *machine) error { return m.restore(m.snapshot()) },
		"a backlog": func(m *machine) error {
			m.do(mutationsFor(200, func(i int) lease.Mutation { return acquire(fmt.Sprint("filler/", i), "o", "", time.Hour) })...)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := fsm.Open(fsm.Config{Dir: t.TempDir(), Feed: feed.Bounds{QueueBytes: 20_000}})
			if err != nil {
				t.Fatal(err)
			}
			m := &machine{t: t, term: 1, FSM: f}
			defer m.Close()
			m.log(fsm.EncodeOpening(fsm.Opening{Wall: began}))
			m.must(acquire("k", "o", "", time.Minute))
			m.must(acquire("l", "o", "", time.Second))
			behind, ahead := watchFeed(t, m, feed.Selection{}, 1), watchFeed(t, m, feed.Selection{}, 1)
			await(t, m, m.index)
			if err := ahead.readTo(m.index); err != nil {
				t.Fatal(err)
			}
			if err := lose(m); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return f.Feed().Oldest(feed.Selection{}) == m.index })
			if err := behind.readTo(m.index); !errors.Is(err, feed.ErrRestored) {
				t.Errorf("one who had not read everything: %v", err)
			}
			if err := ahead.readTo(m.index); name == "a backlog" && !errors.Is(err, feed.ErrRestored) || name == "a restore" && err != nil {
				t.Errorf("one who had read everything: %v", err)
			}
			after := watchFeed(t, m, feed.Selection{Prefix: "k"}, m.index)
			m.since = time.Minute
			m.do()
			if err := after.readTo(m.index); err != nil || len(after.events) != 1 || after.events[0].Kind != lease.Expired || after.events[0].Record.Owner != "o" {
				t.Errorf("got %v, %v", after.events, err)
			}
		})
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not so in time")
		}
	}
}
