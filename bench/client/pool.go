package client

import "sync"

// Pool keeps what was acquired until it is released. It is safe for concurrent use.
type Pool[T any] struct {
	mu    sync.Mutex
	items []T
	// left is how many may still be taken before the next Ration.
	left int
}

// Put adds an item.
func (p *Pool[T]) Put(item T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = append(p.items, item)
}

// Take removes an item; false if there are none, or none for this round.
func (p *Pool[T]) Take() (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var item T
	if len(p.items) == 0 || p.left == 0 {
		return item, false
	}
	last := len(p.items) - 1
	item, p.items = p.items[last], p.items[:last]
	p.left--
	return item, true
}

// Ration has the next round take no more than its share, so that there is as much for each
// of the rounds that are left, this one included.
func (p *Pool[T]) Ration(rounds int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = len(p.items) / max(rounds, 1)
}
