package holder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

const (
	ttl    = 10 * time.Second
	margin = 2 * time.Second
	window = ttl - margin
	aKey   = "acme/tenant-7"
)

// world is a store in memory with everything that can go wrong between it and its
// holders. All of it is in one bubble of testing/synctest, which also holds that no
// goroutine is left over.
//
// Its clocks stand still until [world.advance]; a timer then fires only while the test
// waits for something. So nothing happens that a test did not ask for.
type world struct {
	t      *testing.T
	clock  *leasetest.ManualClock // the store's
	memory *leasetest.Memory
	faulty *leasetest.Faulty
	clocks []*leasetest.ManualClock // the replicas'
}

// inWorld runs test in a world of its own.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, clock: leasetest.NewManualClock(time.Now())}
		w.memory = leasetest.NewMemory(w.clock)
		w.faulty = leasetest.NewFaulty(w.memory)
		test(t, w)
	})
}

// inLiveWorld runs test in a world whose clocks all follow the bubble's time: they move
// while the test waits.
func inLiveWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.memory = leasetest.NewMemory(lease.NewSystemClock())
		w.faulty = leasetest.NewFaulty(w.memory)
		test(t, w)
	})
}

// replica returns the clock of another replica.
func (w *world) replica() *leasetest.ManualClock {
	clock := leasetest.NewManualClock(time.Now())
	clock.Advance(5 * time.Second) // clocks have nothing to do with each other
	w.clocks = append(w.clocks, clock)
	return clock
}

// advance has d pass everywhere, once everything has come to rest.
func (w *world) advance(d time.Duration) {
	synctest.Wait()
	w.pass(d)
}

func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	for _, clock := range w.clocks {
		clock.Advance(d)
	}
}

// holder returns a holder of that owner, closed at the end of the test.
func (w *world) holder(owner string, clock lease.Clock, change ...func(*holder.Config)) *holder.Holder {
	w.t.Helper()
	return newHolder(w.t, w.faulty, holder.Config{Owner: owner, TTL: ttl, Margin: margin, Clock: clock}, change...)
}

func newHolder(t *testing.T, store lease.Store, config holder.Config, change ...func(*holder.Config)) *holder.Holder {
	t.Helper()
	for _, do := range change {
		do(&config)
	}
	h, err := holder.New(store, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// hold has owner acquire the key.
func (w *world) hold(owner string, clock lease.Clock) *holder.Lease {
	w.t.Helper()
	return acquire(w.t, w.holder(owner, clock), aKey)
}

func acquire(t *testing.T, h *holder.Holder, key string) *holder.Lease {
	t.Helper()
	l, err := h.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// record returns what the store has of the key, without passing through faults.
func (w *world) record() lease.Answer {
	w.t.Helper()
	answer, err := w.memory.Get(w.t.Context(), lease.GetRequest{Key: aKey})
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// history returns what happened to the key: "acquire:1 renew:1".
func history(t *testing.T, store lease.Store, key string) string {
	t.Helper()
	page, err := store.History(context.WithoutCancel(t.Context()), lease.HistoryRequest{Key: key, PageSize: lease.MaxPageSize})
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, entry := range page.Entries {
		ops = append(ops, fmt.Sprintf("%v:%d", entry.Op, entry.Epoch))
	}
	return strings.Join(ops, " ")
}

// notes are what was seen of changes, for who looks from another goroutine.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "; ")
}

// states has the states of all changes noted.
func (n *notes) states(c *holder.Config) {
	c.OnChange = func(change holder.Change) { n.add(string(change.State)) }
}

// fence returns "reason, cause" of the fence in err, or what err is instead.
func fence(err error) string {
	if fenced, ok := errors.AsType[*lease.FencedError](err); ok {
		return string(fenced.Reason) + ", " + string(fenced.Cause)
	}
	return fmt.Sprint(err)
}

func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func wantCode(t *testing.T, what string, err error, code lease.Code) {
	t.Helper()
	if lease.CodeOf(err) != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func succeed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
