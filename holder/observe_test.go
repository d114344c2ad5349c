package holder_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

func TestTheLogTellsOfFencesAndFailures(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
		acquire(t, h, aKey)
		w.faulty.Cut()
		time.Sleep(ttl)
		h.Close()
		for _, part := range []string{"held: key=" + aKey + " epoch=1", "fenced: key=" + aKey + " epoch=1 cause=unreachable", "renewals failed", "injected outage", "released"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not say %q: %s", part, &log)
			}
		}
	})
}

// A callback is part of the program: it may do with leases what it likes.
func TestACallbackCanUseTheLease(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) {
			c.OnChange = func(change holder.Change) {
				if change.State == holder.StateHeld {
					succeed(t, "renew", change.Lease.Renew(t.Context()))
					succeed(t, "release", change.Lease.Release(t.Context()))
				}
			}
		})
		acquire(t, h, aKey)
		synctest.Wait()
		want(t, "remaining at the store", w.record().Remaining, 0)
	})
}

func TestStatsCountWhatHappened(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		a, _ := acquire(t, h, "a"), acquire(t, h, "b")
		succeed(t, "release", a.Release(t.Context()))
		w.faulty.Cut()
		time.Sleep(window + margin/2)
		w.faulty.Heal()
		time.Sleep(margin)
		w.faulty.Cut()
		time.Sleep(2 * ttl)
		w.faulty.Heal()
		time.Sleep(ttl)
		got := h.Stats()
		if got.Failed == 0 || got.Renewed == 0 || got.Requests < got.Failed+got.Renewed+3 {
			t.Errorf("%+v", got)
		}
		got.Failed, got.Renewed, got.Requests = 0, 0, 0
		want(t, "stats", got, holder.Stats{Acquired: 2, Released: 1, Fenced: 2, Resumed: 1, Lost: 1})
	})
}
