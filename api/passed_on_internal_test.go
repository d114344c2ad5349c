package api

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However many calls wait at the leader, one goroutine looks whether it still is; none
// does when all are answered.
func TestCallsThatWerePassedOnAreWatchedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leader atomic.Value
		leader.Store("n1")
		var looks atomic.Int64
		p := newPassedOn(func() string { looks.Add(1); return leader.Load().(string) })
		before := runtime.NumGoroutine()
		const calls = 1000
		var ctxs []context.Context
		var releases []func()
		for i := range calls {
			id := "n1"
			if i == 0 {
				id = "n2" // leads again later
			}
			ctx, release := p.whileLeading(t.Context(), id)
			ctxs, releases = append(ctxs, ctx), append(releases, release)
		}
		leader.Store("")
		time.Sleep(time.Second)
		if more := runtime.NumGoroutine() - before; more > 2 || looks.Load() > 41 {
			t.Errorf("%d goroutines looked %d times in a second", more, looks.Load())
		}
		for i, ctx := range ctxs {
			if ctx.Err() != nil {
				t.Fatalf("call %d has ended while no leader was known", i)
			}
		}
		leader.Store("n2")
		time.Sleep(leaderCheck)
		synctest.Wait()
		for i, ctx := range ctxs {
			changed, ended := errors.AsType[*leaderChangedError](context.Cause(ctx))
			if ended != (i > 0) || ended && changed.to != "n2" {
				t.Fatalf("call %d: %v", i, context.Cause(ctx))
			}
		}
		for _, release := range releases {
			release()
		}
		seen := looks.Load()
		time.Sleep(time.Second)
		if looks.Load() != seen {
			t.Error("somebody looks though no call is left")
		}
		ctx, release := p.whileLeading(t.Context(), "n1")
		time.Sleep(leaderCheck)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("a later call is not watched")
		}
		release()
	})
}
