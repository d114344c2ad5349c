package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// bubble is a store whose time is that of the synctest bubble it is made in, with a
// key that "first" holds for 10 s.
func bubble(t *testing.T) *leasetest.Faulty {
	t.Helper()
	store := leasetest.NewMemory(lease.NewSystemClock())
	req := lease.AcquireRequest{Key: "k", Owner: "first", TTL: 10 * time.Second}
	if _, err := store.Acquire(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return leasetest.NewFaulty(store)
}

func TestWaitUntilFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := bubble(t)
		start := time.Now()
		got := invocation{cluster: fakeCluster{Store: store}}.run("acquire", "k", "--owner", "second", "--wait", "30s")
		check(t, "code", got.code, exitDone)
		check(t, "stderr", got.stderr, `waiting: "k" is held by "first" at epoch 1, for another 10s unless renewed; you are next`+"\n")
		if took := time.Since(start); took < 10*time.Second || took > 10*time.Second+10*time.Millisecond {
			t.Errorf("granted after %v: the lease ended after 10s", took)
		}
		check(t, "tries", store.Calls(leasetest.Acquire), 1)
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := invocation{cluster: fakeCluster{Store: bubble(t)}}.run("acquire", "k", "--owner", "second", "--wait", "3s")
		check(t, "code", got.code, exitHeld)
		check(t, "waited", time.Since(start), 3*time.Second)
	})
}

func TestNoWait(t *testing.T) {
	store := bubble(t)
	got := invocation{cluster: fakeCluster{Store: store}}.run("acquire", "k", "--owner", "second")
	check(t, "code", got.code, exitHeld)
	check(t, "tries", store.Calls(leasetest.Acquire), 1)
}

// TestWaitThroughOutage holds that waiting goes on while the cluster has no leader,
// and that a try whose answer was lost is the same attempt as the next one.
func TestWaitThroughOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := bubble(t)
		store.FailNext(leasetest.Acquire, leasetest.Fault{Err: lease.ErrUnavailable})
		store.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
		got := invocation{cluster: fakeCluster{Store: store}}.run("acquire", "k", "--owner", "second", "--wait", "30s", "--ttl", "1m", "-o", "json")
		check(t, "code", got.code, exitDone)
		var r recordJSON
		if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
			t.Fatal(err)
		}
		check(t, "epoch", r.Epoch, uint64(2))
	})
}

// TestWaitBeyondLostGrant holds that a grant that nobody heard of and that is over
// does not end the wait.
func TestWaitBeyondLostGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
		store.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
		i := invocation{cluster: fakeCluster{Store: store}}
		args := []string{"acquire", "k", "--owner", "o", "--ttl", "100ms", "--wait", "30s"}
		got := i.run(args...)
		check(t, "code", got.code, exitDone)
		if !strings.HasPrefix(got.stdout, "k is yours: epoch 2") {
			t.Error(got.stdout)
		}
		time.Sleep(time.Second)
		store.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
		check(t, "code for an id of one's own", i.run(append(args, "--request-id", "mine")...).code, exitLost)
	})
}

func TestUnknownNamesRequestID(t *testing.T) {
	store, _ := stillStore()
	faulty := leasetest.NewFaulty(store)
	faulty.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
	i := invocation{cluster: fakeCluster{Store: faulty}}
	got := i.run("acquire", "k", "--owner", "o", "-o", "json")
	check(t, "code", got.code, exitUnavailable)
	var failure errorJSON
	if err := json.Unmarshal([]byte(got.stdout), &failure); err != nil {
		t.Fatal(err)
	}
	id := failure.Error.RequestID
	if id == "" || !strings.Contains(got.stderr, "--request-id "+id) {
		t.Fatalf("%+v", got)
	}
	again := i.run("acquire", "k", "--owner", "o", "--request-id", id)
	if again.code != exitDone || !strings.HasPrefix(again.stdout, "k is yours: epoch 1,") || strings.Contains(again.stdout+again.stderr, id) {
		t.Errorf("%+v", again)
	}
}

// TestInterrupt holds what is said when the user loses patience: unknown while a
// request is under way, held between two tries.
func TestInterrupt(t *testing.T) {
	cases := []struct {
		name  string
		fault leasetest.Fault
		args  []string
		code  int
		said  string
	}{
		{"no answer", leasetest.Fault{DelayAfter: time.Hour}, []string{"release", "k", "--owner", "first", "--epoch", "1"}, exitUnavailable, "outcome unknown"},
		{"bare cancellation", leasetest.Fault{Err: context.Canceled}, []string{"release", "k", "--owner", "first", "--epoch", "1"}, exitUnavailable, "outcome unknown"},
		{"waiting", leasetest.Fault{}, []string{"acquire", "k", "--owner", "second", "--wait", "1m"}, exitHeld, `held by "first"`},
		{"waiting, not heard", leasetest.Fault{LoseAnswer: true}, []string{"acquire", "k", "--owner", "second", "--wait", "1m"}, exitUnavailable, `Ctrl-C while waiting for "k", which may have been granted in that instant; repeat the command with --request-id `},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := bubble(t)
				store.FailAll(leasetest.Release, c.fault)
				store.FailAll(leasetest.Acquire, c.fault)
				ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("Ctrl-C"))
				defer cancel()
				start := time.Now()
				got := invocation{cluster: fakeCluster{Store: store}, ctx: ctx}.run(c.args...)
				check(t, "code", got.code, c.code)
				if !strings.Contains(got.stderr, c.said) {
					t.Errorf("no %q in %q", c.said, got.stderr)
				}
				if took := time.Since(start); took > 3*time.Second {
					t.Errorf("ended %v after the interrupt", took-3*time.Second)
				}
			})
		})
	}
}

func TestTimeoutIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := bubble(t)
		store.FailAll(leasetest.Renew, leasetest.Fault{DelayAfter: time.Hour})
		start := time.Now()
		got := invocation{cluster: fakeCluster{Store: store}}.run("renew", "k", "--owner", "first", "--epoch", "1", "--timeout", "2s")
		check(t, "code", got.code, exitUnavailable)
		check(t, "took", time.Since(start), 2*time.Second)
	})
}

// TestReleaseTo holds that a key is handed to a named waiter, and to nobody else.
func TestReleaseTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := invocation{cluster: fakeCluster{Store: bubble(t)}}
		release := []string{"release", "k", "--owner", "first", "--epoch", "1", "--to", "third"}
		check(t, "while nobody waits", i.run(release...), outcome{
			exitFailed, "",
			`leasenode: "k" was not released: "third" does not wait for it now; try again when it does, or release to whoever is first in line` + "\n",
		})
		check(t, "its reason", strings.HasPrefix(i.run(append(release, "-o", "json")...).stdout, `{"error":{"reason":"NOT_WAITING",`), true)
		for _, bad := range []string{"", " ", strings.Repeat("o", 257)} {
			got := i.run("release", "k", "--owner", "first", "--epoch", "1", "--to", bad)
			if got.code != exitUsage || !strings.Contains(got.stderr, "to ") || !strings.Contains(got.stderr, "256 bytes") {
				t.Errorf("to %q: %+v", bad, got)
			}
		}
		waiting := map[string]chan outcome{}
		for _, owner := range []string{"second", "third"} {
			waiting[owner] = make(chan outcome, 1)
			go func() {
				waiting[owner] <- i.run("acquire", "k", "--owner", owner, "--wait", "5s", "--ttl", "1m")
			}()
			synctest.Wait()
		}
		got := i.run(release...)
		check(t, "code", got.code, exitDone)
		check(t, "stdout", got.stdout, "k is handed over to third: epoch 1 was released\n")
		third := <-waiting["third"]
		check(t, "code of the third", third.code, exitDone)
		if !strings.Contains(third.stderr, "you are 2nd in line") {
			t.Errorf("the third was told %q", third.stderr)
		}
		second := <-waiting["second"]
		check(t, "code of the second", second.code, exitHeld)
		if !strings.Contains(second.stderr, `held by "third" at epoch 2`) {
			t.Errorf("the second was told %q", second.stderr)
		}
	})
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 101: "101st", 111: "111th"} {
		check(t, "ordinal", ordinal(n), want)
	}
}
