package holder

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// Of the failures of several tries the one that a node has answered is told, not that
// another could not be reached; and nothing of a try that was cut off.
func TestTheMostTellingErrorIsKept(t *testing.T) {
	answered := wire.StatusOf(lease.ErrUnavailable, wire.Leader{}).Err()
	refused := errors.New("connection refused")
	ended, end := context.WithCancel(t.Context())
	end()
	type try struct {
		ctx         context.Context
		failed, err error
	}
	told, later, unreached, cut := errors.New("a node says"), errors.New("another says"), errors.New("not reached"), errors.New("cut off")
	for name, c := range map[string]struct {
		tries []try
		want  error
	}{
		"answered, then not reached": {[]try{{t.Context(), answered, told}, {t.Context(), refused, unreached}}, told},
		"not reached, then answered": {[]try{{t.Context(), refused, unreached}, {t.Context(), answered, told}}, told},
		"answered twice":             {[]try{{t.Context(), answered, told}, {t.Context(), answered, later}}, later},
		"cut off at last":            {[]try{{t.Context(), refused, unreached}, {ended, refused, cut}}, unreached},
		"only cut off":               {[]try{{ended, refused, cut}}, cut},
	} {
		var last telling
		for _, try := range c.tries {
			last.take(try.ctx, try.failed, try.err)
		}
		if !errors.Is(last.err, c.want) {
			t.Errorf("%s: %v", name, last.err)
		}
	}
}

// The pauses are short while a leader that died is being replaced, and grow from then on:
// clients must not press a cluster that has no leader.
func TestPausesAreShortFirstAndGrow(t *testing.T) {
	for n, want := range []time.Duration{5, 10, 10, 10, 10, 10, 20, 40, 80, 160, 320, 500, 500} {
		if got := longestPause(n); got != want*time.Millisecond {
			t.Errorf("before try %d: %v, want %v ms", n+2, got, int64(want))
		}
	}
	for n := range 1000 {
		if got := longestPause(n); got <= 0 || got > maxPause {
			t.Errorf("before try %d: %v", n+2, got)
		}
	}
}

// Many calls that fail together at one node are one failure of it: it is not avoided for
// longer than after one.
func TestCallsThatFailTogetherAreOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conns{endpoints: []string{"a", "b"}, silent: map[string]silence{}}
		for _, want := range []time.Duration{firstAvoid, 2 * firstAvoid, 4 * firstAvoid} {
			for range 16 {
				c.unlearn(target{addr: "a"}, errors.New("connection reset"))
			}
			time.Sleep(want - time.Millisecond)
			if !c.avoidedLocked("a") {
				t.Errorf("not avoided for %v", want)
			}
			time.Sleep(time.Millisecond)
			if c.avoidedLocked("a") {
				t.Errorf("avoided for more than %v", want)
			}
		}
	})
}
