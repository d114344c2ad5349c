package proxy

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Line is one direction between two machines. It is shared by the proxies whose
// connections run over it, and is safe for concurrent use. Make one with [NewLine].
type Line struct {
	mu      sync.Mutex
	state   nemesis.LinkState
	changed chan struct{} // closed when the state is another
	proxies []*Proxy
	// free is when the bandwidth has room for the next byte.
	free time.Time
}

// NewLine returns a healthy line.
func NewLine() *Line { return &Line{changed: make(chan struct{})} }

// Set puts the line into a state, which is in effect when Set returns.
func (l *Line) Set(state nemesis.LinkState) {
	l.mu.Lock()
	if l.state.BytesPerSecond != state.BytesPerSecond {
		l.free = time.Time{}
	}
	l.state = state
	close(l.changed)
	l.changed = make(chan struct{})
	proxies := slices.Clone(l.proxies)
	l.mu.Unlock()
	for _, p := range proxies {
		p.lineChanged()
	}
}

// look returns the state and what is closed when it changes.
func (l *Line) look() (nemesis.LinkState, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// reserve takes room for n bytes of the bandwidth, and returns when they have passed.
func (l *Line) reserve(n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.BytesPerSecond == 0 {
		return time.Time{}
	}
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(l.state.BytesPerSecond))
	return l.free
}

func (l *Line) join(p *Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxies = append(l.proxies, p)
}

func (l *Line) leave(p *Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxies = slices.DeleteFunc(l.proxies, func(q *Proxy) bool { return q == p })
}

// delay draws how long what is sent now takes.
func delay(state nemesis.LinkState) time.Duration {
	if state.Jitter <= 0 {
		return state.Delay
	}
	return state.Delay + rand.N(state.Jitter)
}
