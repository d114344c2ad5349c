package api

import (
	"context"
	"sync"
)

// rounds has one question answered for all who ask it at about the same time, each by
// an answer that was asked for after they came: ten thousand watches that begin at once
// ask the leader a few times.
type rounds struct {
	mu   sync.Mutex
	next *round // takes in who comes; nil if nobody waits
	// turn has a token while a round is under way; nil before the first. It is no mutex:
	// who waits for it can be called off, and a simulation's time goes on meanwhile.
	turn chan struct{}
}

type round struct {
	done  chan struct{} // closed after what follows is set
	index uint64
	err   error
}

// do returns what ask returns, or the error of ctx if that ends before. Whoever of a
// round gets the turn asks for all of it, and to the end even if its own call ends: ask
// has to bound itself.
func (r *rounds) do(ctx context.Context, ask func(context.Context) (uint64, error)) (uint64, error) {
	next, turn := r.join()
	for {
		select {
		case <-next.done:
			return next.index, next.err
		case <-ctx.Done():
			return 0, ctx.Err()
		case turn <- struct{}{}:
			r.ask(context.WithoutCancel(ctx), next, ask)
			<-turn
		}
	}
}

// join returns the round of who comes now.
func (r *rounds) join() (next *round, turn chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	if r.turn == nil {
		r.turn = make(chan struct{}, 1)
	}
	return r.next, r.turn
}

// ask has mine answered, unless it was. The caller has the turn.
func (r *rounds) ask(ctx context.Context, mine *round, ask func(context.Context) (uint64, error)) {
	r.mu.Lock()
	if r.next != mine {
		r.mu.Unlock()
		return
	}
	r.next = nil // who comes from here on is in the next round
	r.mu.Unlock()
	defer close(mine.done)
	mine.index, mine.err = ask(ctx)
}
