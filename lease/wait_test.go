package lease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func TestPollLimits(t *testing.T) {
	valid := func(change func(*lease.Poll)) lease.Poll {
		p := lease.Poll{Mutation: lease.AcquireRequest{Key: "k", Owner: "o", TTL: 8 * time.Second, RequestID: "r"}.Mutation(), Wait: time.Second}
		change(&p)
		return p
	}
	for _, c := range []struct {
		name, field string
		poll        lease.Poll
	}{
		{"valid", "", valid(func(*lease.Poll) {})},
		{"a quarter of the ttl", "", valid(func(p *lease.Poll) { p.Wait = 2 * time.Second })},
		{"more than a quarter", "wait", valid(func(p *lease.Poll) { p.Wait = 2*time.Second + time.Millisecond })},
		{"10 s", "", valid(func(p *lease.Poll) { p.Mutation.TTL, p.Wait = time.Hour, 10*time.Second })},
		{"more than 10 s", "wait", valid(func(p *lease.Poll) { p.Mutation.TTL, p.Wait = time.Hour, 10*time.Second+1 })},
		{"no wait", "wait", valid(func(p *lease.Poll) { p.Wait = 0 })},
		{"waited without a wait", "waited", valid(func(p *lease.Poll) { p.Wait, p.Waited = 0, 1 })},
		{"no request id", "request_id", valid(func(p *lease.Poll) { p.Mutation.RequestID = "" })},
		{"waited", "", valid(func(p *lease.Poll) { p.Waited = lease.MaxWait })},
		{"waited too long", "waited", valid(func(p *lease.Poll) { p.Waited = lease.MaxWait + 1 })},
		{"waited in the future", "waited", valid(func(p *lease.Poll) { p.Waited = -1 })},
		{"a bad mutation", "ttl", valid(func(p *lease.Poll) { p.Mutation.TTL = 0 })},
	} {
		err := c.poll.Validate()
		invalid, ok := errors.AsType[*lease.InvalidError](err)
		if ok != (c.field != "") || ok && invalid.Field != c.field {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOnWaitingTellsWhatIsNews(t *testing.T) {
	var told []int
	ctx := lease.OnWaiting(context.Background(), func(held lease.HeldError) { told = append(told, held.Place) })
	held := lease.HeldError{Record: lease.Record{Owner: "o", Epoch: 1}, Place: 2}
	lease.TellWaiting(context.Background(), held)
	lease.TellWaiting(ctx, held)
	held.Remaining = time.Second
	lease.TellWaiting(ctx, held)
	held.Place = 1
	lease.TellWaiting(ctx, held)
	held.Record.Epoch++
	lease.TellWaiting(ctx, held)
	if !slices.Equal(told, []int{2, 1, 1}) {
		t.Errorf("%v", told)
	}
}
