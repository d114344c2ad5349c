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
	// a simulation's time stands still while somebody waits for one.
	turn chan struct{}
}

type round struct {
	done  chan struct{} // closed after what follows is set
	index uint64
	err   error
}

// do returns what ask returns. The context of ask is that of whoever came first.
func (r *rounds) do(ctx context.Context, ask func(context.Context) (uint64, error)) (uint64, error) {
	r.mu.Lock()
	mine := r.next == nil
	if mine {
		r.next = &round{done: make(chan struct{})}
	}
	if r.turn == nil {
		r.turn = make(chan struct{}, 1)
	}
	next, turn := r.next, r.turn
	r.mu.Unlock()
	if mine {
		turn <- struct{}{}
		defer func() { <-turn }()
		r.mu.Lock()
		r.next = nil // who comes from here on is in the next round
		r.mu.Unlock()
		next.index, next.err = ask(context.WithoutCancel(ctx))
		close(next.done)
	}
	select {
	case <-next.done:
		return next.index, next.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
