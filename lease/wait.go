package lease

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits of waiting for a key.
const (
	// MaxWait is how long one attempt to acquire may wait.
	MaxWait = 10 * time.Minute
	// MaxPoll is how long one poll of a wait may stay in line; and no longer than
	// [PollTTLs] of them fit into the ttl asked for, since the lease is counted from the
	// sending of the poll that is granted.
	MaxPoll  = 10 * time.Second
	PollTTLs = 4

	// MaxWaitersPerKey and MaxWaiters are how many attempts may be in line for one key,
	// and for all keys together. More are refused with an [*ExhaustedError].
	MaxWaitersPerKey = 10_000
	MaxWaiters       = 100_000
)

// LongestPoll returns how long a poll of an attempt with that ttl may stay in line, in
// whole milliseconds: a quarter of the ttl, and at most [MaxPoll].
func LongestPoll(ttl time.Duration) time.Duration {
	return min(ttl/PollTTLs, MaxPoll).Truncate(time.Millisecond)
}

// Poll is one beat of a waiting acquire, in the form in which it travels. Who waits
// sends one after the other, all with one request id, each before the one before it
// ends: the place in line belongs to the request id.
type Poll struct {
	Mutation Mutation
	// Wait is how long this poll stays in line. It is positive, and at most
	// [LongestPoll].
	Wait time.Duration
	// Waited is how long the attempt has waited before this poll, under earlier polls or
	// other leaders: 0 to [MaxWait]. It decides the place in a line that does not know
	// the request id.
	Waited time.Duration
}

// Validate checks p against the limits and returns an [*InvalidError] that names the
// first field which is outside, or nil.
func (p Poll) Validate() error {
	m := p.Mutation
	if err := m.Validate(); err != nil {
		return err
	}
	longest := LongestPoll(m.TTL)
	switch {
	case m.RequestID == "":
		return &InvalidError{Field: "request_id", Problem: "is empty in a poll that waits", Limit: fmt.Sprintf("1 to %d bytes", MaxRequestIDBytes)}
	case p.Wait == 0 && p.Waited != 0:
		return &InvalidError{Field: "waited", Problem: fmt.Sprintf("is %v without a wait", p.Waited), Limit: "0 for an acquire that does not wait"}
	case p.Wait <= 0 || p.Wait > longest:
		return &InvalidError{Field: "wait", Problem: fmt.Sprintf("%v is outside", p.Wait), Limit: fmt.Sprintf("up to a quarter of the ttl and %v, here %v", MaxPoll, longest)}
	case p.Waited < 0 || p.Waited > MaxWait:
		return &InvalidError{Field: "waited", Problem: fmt.Sprintf("%v is outside", p.Waited), Limit: fmt.Sprintf("0 to %v", MaxWait)}
	}
	return nil
}

// Validate checks r against the limits and returns an [*InvalidError] that names the
// first field which is outside, or nil.
func (r AcquireRequest) Validate() error {
	if err := r.Mutation().Validate(); err != nil {
		return err
	}
	if r.Wait < 0 || r.Wait > MaxWait {
		return &InvalidError{Field: "wait", Problem: fmt.Sprintf("%v is outside", r.Wait), Limit: fmt.Sprintf("0 to %v", MaxWait)}
	}
	return nil
}

type waitingKey struct{}

// teller calls tell with what has changed.
type teller struct {
	mu   sync.Mutex
	tell func(HeldError)
	last HeldError
}

// OnWaiting returns a context under which an acquire that waits, through whatever
// [Store] or holder, calls tell when it is known who is in the way, and again whenever
// the owner, the epoch or the place in line has changed. The calls come one at a time,
// on goroutines of the waiting call, which they hold up; none comes after it has
// returned.
func OnWaiting(ctx context.Context, tell func(HeldError)) context.Context {
	return context.WithValue(ctx, waitingKey{}, &teller{tell: tell})
}

// TellWaiting calls what [OnWaiting] has put into ctx, if anything, and if held is news.
// It is for stores.
func TellWaiting(ctx context.Context, held HeldError) {
	t, ok := ctx.Value(waitingKey{}).(*teller)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if held.Place != t.last.Place || held.Record.Epoch != t.last.Record.Epoch || held.Record.Owner != t.last.Record.Owner {
		t.last = held
		t.tell(held)
	}
}
