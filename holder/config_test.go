package holder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestWhatLeavesNoUsableWindowIsRefusedBeforeTheStoreSeesIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for name, c := range map[string]struct {
			change func(*holder.Config)
			says   string
		}{
			"margin = ttl":        {func(c *holder.Config) { c.Margin = c.TTL }, "margin"},
			"margin > ttl":        {func(c *holder.Config) { c.Margin = c.TTL + 1 }, "margin"},
			"negative margin":     {func(c *holder.Config) { c.Margin = -1 }, "margin"},
			"no ttl":              {func(c *holder.Config) { c.TTL, c.Margin = 0, 0 }, "ttl"},
			"ttl too short":       {func(c *holder.Config) { c.TTL, c.Margin = 50*time.Millisecond, 10*time.Millisecond }, "ttl"},
			"ttl too long":        {func(c *holder.Config) { c.TTL = 25 * time.Hour }, "ttl"},
			"ttl not whole":       {func(c *holder.Config) { c.TTL = ttl + 1 }, "ttl"},
			"no owner":            {func(c *holder.Config) { c.Owner = "" }, "owner"},
			"blank owner":         {func(c *holder.Config) { c.Owner = " \u00a0" }, "owner"},
			"attributes too many": {func(c *holder.Config) { c.Attributes = map[string]string{"": "x"} }, "attributes"},
		} {
			config := holder.Config{Owner: "r1", TTL: ttl, Margin: margin, Clock: w.replica()}
			c.change(&config)
			_, err := holder.New(w.faulty, config)
			wantCode(t, name, err, lease.CodeInvalid)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v does not name %s", name, err, c.says)
			}
		}
		_, err := w.holder("r1", w.replica()).Acquire(t.Context(), "a\nb")
		wantCode(t, "a bad key", err, lease.CodeInvalid)
		want(t, "requests", w.faulty.Peak(), 0)
	})
}

func TestEveryFaultOfAConfigIsNamedAtOnce(t *testing.T) {
	_, err := holder.New(nil, holder.Config{TTL: ttl, Margin: ttl})
	if err == nil || !strings.Contains(err.Error(), "owner") || !strings.Contains(err.Error(), "margin") {
		t.Errorf("%v", err)
	}
}

func TestTheMarginIsAFifthUnlessGiven(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := acquire(t, w.holder("r1", w.replica(), func(c *holder.Config) { c.Margin = 0 }), aKey)
		want(t, "remaining", l.Remaining(), ttl*4/5)
	})
}

func TestEveryFailureHasItsCode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		_, err := w.holder("r2", w.replica()).Acquire(t.Context(), aKey)
		want(t, "held", lease.CodeOf(err), "LEASE_HELD")
		w.faulty.Cut()
		want(t, "unavailable", lease.CodeOf(l.Renew(t.Context())), "UNAVAILABLE")
		w.faulty.Heal()
		w.faulty.FailNext(leasetest.Renew, leasetest.Fault{LoseAnswer: true})
		want(t, "unknown", lease.CodeOf(l.Renew(t.Context())), "OUTCOME_UNKNOWN")
		w.advance(ttl)
		want(t, "fenced", lease.CodeOf(l.Check()), "FENCED")
		want(t, "lost", lease.CodeOf(l.Renew(t.Context())), "LEASE_LOST")
		_, err = holder.New(w.memory, holder.Config{})
		want(t, "invalid", lease.CodeOf(err), "INVALID")
	})
}
