package crashtest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// line is owners who wait for one key over and over, each of whom gives it up as soon as
// it has it, and a watcher of what becomes of it.
type line struct {
	t     *testing.T
	owner []string
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu      sync.Mutex
	turns   map[string]int    // grants that their owners have heard of
	heard   map[uint64]string // epoch: who was told that it is theirs
	granted []string          // whose epoch 1, 2, ... is, as told to the watcher
}

const lineKey = "turns"

func (c *cluster) startLine(n int) *line {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &line{t: c.t, stop: cancel, turns: map[string]int{}, heard: map[uint64]string{}}
	client := c.dial()
	c.t.Cleanup(l.end)
	watching := make(chan struct{})
	l.done.Go(func() { l.watch(ctx, client, watching) })
	select {
	case <-watching:
	case <-time.After(90 * time.Second):
		c.t.Fatal("the watch does not begin")
	}
	for i := range n {
		owner := fmt.Sprintf("w%d", i)
		l.owner = append(l.owner, owner)
		l.done.Go(func() { l.wait(ctx, client, owner) })
	}
	return l
}

// end has nobody wait any more.
func (l *line) end() {
	l.stop()
	l.done.Wait()
}

// wait takes turn after turn.
func (l *line) wait(ctx context.Context, client *holder.Client, owner string) {
	for ctx.Err() == nil {
		answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: lineKey, Owner: owner, TTL: 4 * time.Second, Wait: lease.MaxWait})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.t.Errorf("%s: %v", owner, err)
			return
		}
		l.hear(answer.Record)
		_, err = client.Release(ctx, lease.ReleaseRequest{Key: lineKey, Owner: owner, Epoch: answer.Record.Epoch})
		// One that was carried out, unheard, is answered lost once the next is granted.
		if code := lease.CodeOf(err); err != nil && ctx.Err() == nil && code != lease.CodeLost {
			l.t.Logf("%s: release of epoch %d: %v", owner, answer.Record.Epoch, err)
		}
	}
}

func (l *line) hear(r lease.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, twice := l.heard[r.Epoch]; twice {
		l.t.Errorf("epoch %d was granted to %s and to %s", r.Epoch, first, r.Owner)
	}
	l.heard[r.Epoch] = r.Owner
	l.turns[r.Owner]++
}

// watch notes each grant, and checks that its epoch is the next. It closes watching once
// it would miss none.
func (l *line) watch(ctx context.Context, client *holder.Client, watching chan<- struct{}) {
	for update, err := range client.Watch(ctx, lease.WatchRequest{Key: lineKey, Sync: true}) {
		if err != nil {
			if ctx.Err() == nil {
				l.t.Errorf("watch: %v", err)
			}
			return
		}
		if update.Synced && watching != nil {
			close(watching)
			watching = nil
		} else if update.Synced {
			l.t.Error("the watch has lost its place")
		}
		l.mu.Lock()
		for _, e := range update.Events {
			if e.Kind != lease.Acquired {
				continue
			}
			if want := uint64(len(l.granted)) + 1; e.Record.Epoch != want {
				l.t.Errorf("epoch %d was granted after %d", e.Record.Epoch, want-1)
			}
			l.granted = append(l.granted, e.Record.Owner)
		}
		l.mu.Unlock()
	}
}

// count returns how many grants their owners have heard of.
func (l *line) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.heard)
}

// behind returns who has not had another turn since there were that many.
func (l *line) behind(turns map[string]int) (owners []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, owner := range l.owner {
		if l.turns[owner] <= turns[owner] {
			owners = append(owners, owner)
		}
	}
	return owners
}

// soFar returns how many turns each has had.
func (l *line) soFar() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := map[string]int{}
	for owner, n := range l.turns {
		turns[owner] = n
	}
	return turns
}

// longest returns the most grants to others before the first turn of anyone, and after
// one, until the next or the end.
func (l *line) longest() (first, later gap) {
	for _, owner := range l.owner {
		seen, last := false, -1
		for i, granted := range append(slices.Clone(l.granted), owner) {
			if granted != owner {
				continue
			}
			most := &first
			if seen {
				most = &later
			}
			if n := i - last - 1; n > most.grants {
				*most = gap{n, i, owner}
			}
			seen, last = true, i
		}
	}
	return first, later
}

// gap is how many grants went to others before the one of that number was owner's.
type gap struct {
	grants, before int
	owner          string
}

// Nobody who waits starves while leaders are killed, one after the other: whoever waits
// joins the next one's line at the place that the length of the wait gives.
func TestNobodyStarvesThroughKills(t *testing.T) {
	const waiters, kills, round = 50, 20, 4
	c := startCluster(t, 3)
	l := c.startLine(waiters)
	c.eventually("everyone has had a turn", func(context.Context) bool { return len(l.behind(nil)) == 0 })
	began, slowest := time.Now(), time.Duration(0)
	turns := l.soFar()
	for kill := range kills {
		leader := c.leader()
		before := l.count()
		killed := time.Now()
		c.kill(leader)
		c.eventually("grants go on", func(context.Context) bool { return l.count() > before+10 })
		slowest = max(slowest, time.Since(killed))
		c.start(leader)
		c.agree()
		if (kill+1)%round == 0 {
			c.eventually("everyone has had another turn", func(context.Context) bool { return len(l.behind(turns)) == 0 })
			turns = l.soFar()
		}
	}
	took := time.Since(began)
	// The watcher may be behind by what it has not been sent yet.
	heard := l.count()
	c.eventually("the watcher has been told", func(context.Context) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.granted) >= heard
	})
	l.end()
	l.check(waiters)
	t.Logf("%d grants of which %d were heard of, in %v; the slowest takeover took %v", len(l.granted), len(l.heard), took.Round(time.Millisecond), slowest.Round(time.Millisecond))
}

// check compares what the owners were told with what the watcher was, and how long
// anybody had to wait.
func (l *line) check(waiters int) {
	l.t.Helper()
	for epoch, owner := range l.heard {
		if epoch <= uint64(len(l.granted)) && l.granted[epoch-1] != owner {
			l.t.Errorf("epoch %d is %s's for itself, and %s's for the watcher", epoch, owner, l.granted[epoch-1])
		}
	}
	// Before its first turn, an owner may still be on its way to the line.
	first, later := l.longest()
	l.t.Logf("the most grants to others before a first turn: %+v; between two: %+v", first, later)
	if limit := 5 * waiters; later.grants > limit {
		l.t.Errorf("%s was passed over by %d grants, more than %d", later.owner, later.grants, limit)
	}
}
