// Package historytest makes runs to try the judges on: clients, a network that loses
// and delays, holders and a fenced resource around one store in memory, all in virtual
// time and from a seed. It is no test of a cluster: nothing here runs in parallel.
package historytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// Setup says what to make.
type Setup struct {
	Seed uint64
	// Clients is how many clients there are; each works on one key at a time.
	Clients int
	Keys    []string
	Length  time.Duration
	// Loss is how many of a hundred operations lose their answer, or themselves, or
	// arrive late.
	Loss int
	// Tries is what operations say of themselves: 1, or 0 for nobody counted.
	Tries int
	// Wrap breaks the store; nil leaves it as it is.
	Wrap func(lease.Store) lease.Store
}

// world is a run in the making.
type world struct {
	setup  Setup
	random *rand.Rand
	clock  *leasetest.ManualClock
	memory *leasetest.Memory
	store  lease.Store
	run    history.Run
	events []event
	now    time.Duration
	nextID int
	tokens map[string]uint64 // the highest that each key's resource has seen
	seqs   map[string]int
}

type event struct {
	at time.Duration
	do func()
}

// Make makes a run. The same setup makes the same one.
func Make(s Setup) history.Run {
	clock := leasetest.NewManualClock(time.Unix(1_700_000_000, 123_456_789))
	memory := leasetest.NewMemory(clock)
	w := &world{
		setup: s, random: rand.New(rand.NewPCG(s.Seed, 1)), clock: clock, memory: memory, store: memory,
		tokens: map[string]uint64{}, seqs: map[string]int{},
	}
	if s.Wrap != nil {
		w.store = s.Wrap(memory)
	}
	for i := range s.Clients {
		c := &client{world: w, name: fmt.Sprintf("c%d", i+1), key: s.Keys[i%len(s.Keys)]}
		w.at(w.upTo(100*time.Millisecond), c.next)
	}
	w.loop()
	w.finish()
	return w.run
}

func (w *world) at(when time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(w.events, when, func(e event, t time.Duration) int {
		if e.at <= t {
			return -1
		}
		return 1
	})
	w.events = slices.Insert(w.events, i, event{when, do})
}

func (w *world) after(d time.Duration, do func()) { w.at(w.now+d, do) }

func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(d))) + 1
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *world) loop() {
	for len(w.events) > 0 {
		next := w.events[0]
		w.events = w.events[1:]
		w.clock.Advance(next.at - w.now)
		w.now = next.at
		next.do()
	}
}

// finish reads what the store has in the end, as the harness does.
func (w *world) finish() {
	ctx := context.Background()
	w.run.Info = history.Info{Name: "test", Seed: int64(w.setup.Seed), Nodes: []string{"n1", "n2", "n3"}, Began: w.clock.Wall().Add(-w.now).UTC(), Length: w.now}
	for i, node := range w.run.Info.Nodes {
		w.run.Digests = append(w.run.Digests, history.Digest{Node: node, Index: 7, Sum: "0f"})
		w.run.Recoveries = append(w.run.Recoveries, history.Recovery{Node: node, Healed: w.now / 2, Served: w.now/2 + time.Duration(i+1)*time.Second/4})
	}
	for _, key := range w.setup.Keys {
		page, err := w.store.History(ctx, lease.HistoryRequest{Key: key, PageSize: lease.MaxPageSize})
		if err != nil {
			panic(err)
		}
		for _, e := range page.Entries {
			e.At = wireInstant(e.At)
			w.run.Stored = append(w.run.Stored, e)
		}
		answer, err := w.memory.Get(ctx, lease.GetRequest{Key: key})
		if err != nil {
			panic(err)
		}
		answer.Record.LeaseUntil = wireInstant(answer.Record.LeaseUntil)
		if answer.Record.Epoch > 0 {
			w.run.Records = append(w.run.Records, answer.Record)
		}
	}
	if len(w.setup.Keys) == 1 {
		return // in the store's order, right or wrong
	}
	slices.SortStableFunc(w.run.Stored, func(a, b lease.Entry) int { return int(a.Index) - int(b.Index) })
}

func wireInstant(t lease.Instant) lease.Instant { return lease.InstantOfMillis(t.Millis()) }

// write has holder try the resource with its token.
func (w *world) write(holder, key string, token uint64) {
	w.seqs[key]++
	accepted := token >= w.tokens[key]
	if accepted {
		w.tokens[key] = token
	}
	w.run.Writes = append(w.run.Writes, history.Write{Seq: w.seqs[key], Holder: holder, Key: key, Token: token, At: w.now, Accepted: accepted})
}
