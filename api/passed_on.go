package api

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// leaderCheck is how often a node looks whether the leader still is the one that calls
// were passed on to: most calls are over before the first time.
const leaderCheck = 25 * time.Millisecond

// leaderChangedError ends calls that were passed on to a leader before.
type leaderChangedError struct{ to string }

func (e *leaderChangedError) Error() string { return fmt.Sprintf("node %q leads now", e.to) }

// passedOn are the calls that this node has passed on to a leader and that are not
// answered. While there are any, one goroutine looks for another leader, however many
// wait: a leader that was cut off would keep them until their deadlines.
type passedOn struct {
	leader func() string // empty while none is known

	mu    sync.Mutex
	calls map[*passedCall]struct{}
	// stop ends the goroutine, done is closed when it has ended; nil without calls.
	stop, done chan struct{}
}

// passedCall is a call on its way to the leader of that id.
type passedCall struct {
	id     string
	cancel context.CancelCauseFunc
}

func newPassedOn(leader func() string) *passedOn {
	return &passedOn{leader: leader, calls: map[*passedCall]struct{}{}}
}

// whileLeading returns a context that ends, with a [*leaderChangedError], when this node
// knows another leader than id. release has to be called.
func (p *passedOn) whileLeading(ctx context.Context, id string) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &passedCall{id, cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 {
		p.stop, p.done = make(chan struct{}), make(chan struct{})
		go p.watchLoop(p.stop, p.done)
	}
	p.calls[c] = struct{}{}
	return ctx, func() {
		cancel(nil)
		if done := p.remove(c); done != nil {
			<-done
		}
	}
}

// remove takes c out. If it was the last, it ends the goroutine and returns what is
// closed when that has ended.
func (p *passedOn) remove(c *passedCall) (done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, c)
	if len(p.calls) > 0 {
		return nil
	}
	close(p.stop)
	return p.done
}

func (p *passedOn) watchLoop(stop, done chan struct{}) {
	defer close(done)
	ticker := time.NewTicker(leaderCheck)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		if now := p.leader(); now != "" {
			p.end(now)
		}
	}
}

// end ends the calls that were passed on to another than now.
func (p *passedOn) end(now string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.calls {
		if c.id != now {
			c.cancel(&leaderChangedError{to: now})
		}
	}
}
