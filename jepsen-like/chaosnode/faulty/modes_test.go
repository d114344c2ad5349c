package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

// Each mode breaks its promise, which a node without it keeps.
func TestModes(t *testing.T) {
	broken := map[string]func(*scene) bool{
		faulty.StaleReads:      readsWithoutALeader,
		faulty.ConstantEpoch:   epochStays,
		faulty.RenewsForAnyone: renewsAStrangers,
		faulty.FastClock:       clockIsFast,
		faulty.DropsEntry:      stopsItself,
		faulty.DropsUnnoticed:  differsUnnoticed,
		faulty.EarlyAck:        answersBeforeOthersHaveIt,
		faulty.ForgetsRequests: retryIsANewGrant,
		faulty.FloorBack:       floorGoesBack,
		faulty.DoubleGrant:     grantsWhatIsHeld,
		faulty.LosesEvents:     func(s *scene) bool { return watchedChanges(s) < changes },
		faulty.RepeatsEvents:   func(s *scene) bool { return watchedChanges(s) > changes },
	}
	for _, mode := range faulty.Modes() {
		breaks := broken[mode.Name]
		if breaks == nil {
			t.Errorf("%s has no test", mode.Name)
			continue
		}
		t.Run(mode.Name, func(t *testing.T) {
			if !breaks(start(t, mode.Name)) {
				t.Error("the promise is kept")
			}
		})
		t.Run(mode.Name+" left out", func(t *testing.T) {
			if breaks(start(t, "")) {
				t.Error("a right node breaks the promise")
			}
		})
	}
}

func TestBreakNamesTheModes(t *testing.T) {
	parts := node.SystemParts(hclog.NewNullLogger())
	if err := faulty.Break(&parts, "x"); err == nil {
		t.Error("it breaks in an unknown way")
	}
}

func readsWithoutALeader(s *scene) bool {
	follower := (s.leader() + 1) % 3
	s.acquire(s.client(), acquire("a", ""))
	for i := range s.nodes {
		if i != follower {
			s.stop(i)
		}
	}
	client := s.client(follower)
	s.eventually("it knows that nobody leads, unless it has no idea", func() bool {
		status, err := client.Status(s.within())
		return err == nil && status.Leader == ""
	})
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	_, err := client.Get(ctx, lease.GetRequest{Key: "k"})
	return err == nil
}

func epochStays(s *scene) bool {
	c := s.client()
	first := s.acquire(c, acquire("a", ""))
	s.release(c, "a", first.Epoch)
	second := s.acquire(c, acquire("b", ""))
	if _, err := c.Renew(s.within(), lease.RenewRequest{Key: "k", Owner: "b", Epoch: second.Epoch, TTL: time.Hour}); err != nil {
		s.t.Error(err)
	}
	s.release(c, "b", second.Epoch)
	third := s.acquire(c, acquire("a", ""))
	page, err := c.History(s.within(), lease.HistoryRequest{Key: "k"})
	if err != nil || len(page.Entries) == 0 {
		s.t.Fatal(page, err)
	}
	last := page.Entries[len(page.Entries)-1]
	if got := s.get(c, "k", lease.Linearizable).Record.Epoch; got != third.Epoch || last.Epoch != third.Epoch {
		s.t.Errorf("it is epoch %d, %d is read, and %d is in the history", third.Epoch, got, last.Epoch)
	}
	return third.Epoch == first.Epoch
}

func renewsAStrangers(s *scene) bool {
	c := s.client()
	s.acquire(c, acquire("a", ""))
	_, err := c.Renew(s.within(), lease.RenewRequest{Key: "k", Owner: "b", Epoch: 7, TTL: 2 * time.Hour})
	return err == nil
}

func clockIsFast(s *scene) bool {
	c := s.client()
	s.acquire(c, acquire("a", ""))
	from, began := s.get(c, "k", lease.Linearizable).Now, time.Now()
	time.Sleep(time.Second) // what a clock does in a second cannot be seen sooner
	until := s.get(c, "k", lease.Linearizable).Now
	return until.Sub(from) > time.Since(began)+100*time.Millisecond
}

// acquireMany acquires new keys, each in an entry of its own.
func (s *scene) acquireMany(from, n int) {
	s.t.Helper()
	c := s.client()
	for i := range n {
		req := lease.AcquireRequest{Key: fmt.Sprintf("key-%d", from+i), Owner: "owner", TTL: time.Hour}
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		_, err := c.Acquire(ctx, req)
		cancel()
		if err != nil { // nodes may be stopping
			return
		}
	}
}

func stopsItself(s *scene) bool {
	s.acquireMany(0, 150)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, n := range s.nodes {
			if n.Err() == nil {
				continue
			}
			if _, ok := errors.AsType[*node.DivergedError](n.Err()); !ok || node.ExitCode(n.Err()) != node.ExitDiverged {
				s.t.Errorf("it stops because of %v", n.Err())
			}
			return true
		}
	}
	return false
}

func differsUnnoticed(s *scene) bool {
	s.acquireMany(0, 150)
	s.eventually("all have applied what they have", func() bool {
		status, err := s.client().Status(s.within())
		if err != nil {
			s.t.Fatal(err)
		}
		applied := map[uint64]bool{}
		for _, m := range status.Members {
			applied[m.AppliedIndex] = true
		}
		return len(applied) == 1
	})
	differs := false
	var count [3]int
	for i := range count {
		page, err := s.client(i).List(s.within(), lease.ListRequest{Consistency: lease.Stale, PageSize: lease.MaxPageSize})
		if err != nil {
			s.t.Fatal(err)
		}
		count[i] = len(page.Answers)
		differs = differs || count[i] != count[0]
	}
	for _, n := range s.nodes {
		if n.Err() != nil {
			s.t.Errorf("a node has noticed: %v", n.Err())
		}
	}
	return differs
}

func answersBeforeOthersHaveIt(s *scene) bool {
	leader := s.leader()
	c := s.client(leader)
	s.get(c, "k", lease.Linearizable) // the connection is there
	for i, disk := range s.disks {
		if i != leader {
			if err := disk.Set(nemesis.DiskHanging); err != nil {
				s.t.Fatal(err)
			}
			defer disk.Set(nemesis.DiskHealthy) //nolint:errcheck // never refused
		}
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	answer, err := c.Acquire(ctx, acquire("a", ""))
	if err != nil {
		return false
	}
	if seen := s.get(c, "k", lease.Stale).Record.Epoch; seen != 0 || answer.Record.Epoch != 1 {
		s.t.Errorf("epoch %d was granted, and the leader's own state has %d", answer.Record.Epoch, seen)
	}
	return true
}

func retryIsANewGrant(s *scene) bool {
	c := s.client()
	first, again := s.acquire(c, acquire("a", "id")), s.acquire(c, acquire("a", "id"))
	return again.Epoch != first.Epoch
}

func floorGoesBack(s *scene) bool {
	c := s.client()
	first := s.acquire(c, acquire("a", ""))
	forgotten, err := c.Forget(s.within(), lease.ForgetRequest{Key: "k", Owner: "a", Epoch: first.Epoch})
	if err != nil || forgotten.Record.ForgottenAtEpoch != first.Epoch {
		s.t.Fatal(forgotten, err)
	}
	s.release(c, "a", first.Epoch)
	second := s.acquire(c, acquire("b", ""))
	read := s.get(c, "k", lease.Linearizable).Record
	return second.ForgottenAtEpoch < first.Epoch && read.ForgottenAtEpoch < first.Epoch
}

func grantsWhatIsHeld(s *scene) bool {
	c := s.client()
	first := s.acquire(c, acquire("a", ""))
	for range 20 {
		answer, err := c.Acquire(s.within(), acquire("b", ""))
		if err == nil {
			return answer.Record.Epoch == first.Epoch+1
		}
		if _, held := errors.AsType[*lease.HeldError](err); !held {
			s.t.Fatal(err)
		}
	}
	return false
}

// changes is how many grants watchedChanges makes: more than one broken node lets pass.
const changes = 40

// watchedChanges makes grants and returns how many a watcher is told of.
func watchedChanges(s *scene) int {
	c := s.client()
	told, synced, end := 0, false, uint64(0)
	for u, err := range c.Watch(s.within(), lease.WatchRequest{Sync: true}) {
		if err != nil {
			s.t.Error(err)
			return changes
		}
		told += len(u.Events)
		if u.Synced { // from here on it is told what happens
			s.acquireMany(0, changes)
			synced, end = true, grantIndex(s)
		}
		if synced && u.Position.Index >= end {
			return told
		}
	}
	return told
}

// grantIndex is the index of the last grant.
func grantIndex(s *scene) uint64 {
	page, err := s.client().History(s.within(), lease.HistoryRequest{Key: "key-39"})
	if err != nil || len(page.Entries) == 0 {
		s.t.Fatal(page, err)
	}
	return page.Entries[0].Index
}
