package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// host is a machine on the network: a node's number, outside for all clients that are
// no holders, and one for each holder.
type host int

const outside host = -1

// clientHost returns outside for 0, and the machine of holder i for i + 1.
func clientHost(i int) host { return outside - host(i) }

func holderOf(h host) int { return int(outside-h) - 1 }

// route is the way from one host to another: what is sent along it, whoever dialed.
type route struct{ from, to host }

func (r route) back() route { return route{r.to, r.from} }

// network carries connections between hosts, in memory. Nothing in it waits for
// anything but channels, conditions and timers, so that it can live in a bubble of
// package testing/synctest. Safe for concurrent use.
//
// As with TCP, what is sent over a way that is cut is not lost but late, and comes in
// order once the way is mended; connections end only by their ends, a reset or a fault
// that says so.
type network struct {
	mu        sync.Mutex
	random    *rand.Rand
	ways      map[route]*way
	changed   chan struct{} // closed, and made anew, whenever a way or a host changes
	listeners map[string]*listener
	conns     map[*wire]struct{}
	made      int // connections, so far
}

// way is the state of a route.
type way struct {
	state nemesis.LinkState // guarded by the network's mutex
	cut   atomic.Bool       // is state.Cut
	// refuses says that the machine at its end seems to have nobody listening.
	refuses bool // guarded by the network's mutex
	reset   *time.Timer
}

// A healthy network takes from leastLatency to mostLatency for each message.
const (
	leastLatency = 100 * time.Microsecond
	mostLatency  = 500 * time.Microsecond
)

func newNetwork(seed uint64) *network {
	return &network{
		random: rand.New(rand.NewPCG(seed, 0x6e6574)), ways: map[route]*way{}, changed: make(chan struct{}),
		listeners: map[string]*listener{}, conns: map[*wire]struct{}{},
	}
}

// set puts a way into a state.
func (n *network) set(r route, state nemesis.LinkState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	way := n.wayLocked(r)
	if way.reset != nil {
		way.reset.Stop()
		way.reset = nil
	}
	way.state = state
	way.cut.Store(state.Cut)
	if state.ResetEvery > 0 {
		n.resetAgainLocked(r, state.ResetEvery)
	}
	if state.HalfOpen {
		for w := range n.conns {
			w.silenceLocked(r)
		}
	}
	n.changedLocked()
}

func (n *network) wayLocked(r route) *way {
	if n.ways[r] == nil {
		n.ways[r] = &way{}
	}
	return n.ways[r]
}

// changedLocked wakes up whoever waits for a way to be mended.
func (n *network) changedLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
	for w := range n.conns {
		for _, p := range w.pipes {
			p.wake()
		}
	}
}

// resetAgainLocked resets the connections along r every so often, until r changes.
func (n *network) resetAgainLocked(r route, every time.Duration) {
	way := n.wayLocked(r)
	way.reset = time.AfterFunc(every, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if way.state.ResetEvery != every {
			return
		}
		for w := range n.conns {
			if w.along(r) {
				w.resetLocked(syscall.ECONNRESET)
			}
		}
		n.resetAgainLocked(r, every)
	})
}

// refuse has a and b refuse each other's connections, as a firewall does, and resets those
// that they have.
func (n *network) refuse(a, b host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := route{a, b}
	n.wayLocked(r).refuses, n.wayLocked(r.back()).refuses = true, true
	for w := range n.conns {
		if w.along(r) {
			w.resetLocked(syscall.ECONNRESET)
		}
	}
}

// letIn ends what refuse began.
func (n *network) letIn(a, b host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := route{a, b}
	n.wayLocked(r).refuses, n.wayLocked(r.back()).refuses = false, false
}

// down ends what a host has: its listeners refuse, its connections are reset.
func (n *network) down(h host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for addr, ln := range n.listeners {
		if ln.host == h {
			delete(n.listeners, addr)
			ln.endLocked()
		}
	}
	for w := range n.conns {
		if w.ends.from == h || w.ends.to == h {
			w.dieLocked(h)
		}
	}
	n.changedLocked()
}

// close ends everything.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, way := range n.ways {
		way.state = nemesis.LinkState{}
		if way.reset != nil {
			way.reset.Stop()
		}
	}
	for w := range n.conns {
		w.resetLocked(net.ErrClosed)
	}
}

// listen opens addr on h.
func (n *network) listen(h host, addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "sim", Addr: address(addr), Err: syscall.EADDRINUSE}
	}
	ln := &listener{network: n, host: h, addr: addr, come: make(chan struct{}, 1), ended: make(chan struct{})}
	n.listeners[addr] = ln
	return ln, nil
}

// dial connects h to what listens at addr, on the host to. While a way between them is
// cut there is no answer; nobody there is a refusal.
func (n *network) dial(ctx context.Context, h, to host, addr string) (net.Conn, error) {
	r := route{h, to}
	failed := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "sim", Addr: address(addr), Err: err}
	}
	for {
		n.mu.Lock()
		changed := n.changed
		there, back := n.wayLocked(r), n.wayLocked(r.back())
		cut := there.state.Cut || back.state.Cut
		trip := n.tripLocked(there) + n.tripLocked(back)
		n.mu.Unlock()
		if cut {
			select {
			case <-ctx.Done():
				return failed(ctx.Err())
			case <-changed:
				continue
			}
		}
		if err := rest(ctx, trip); err != nil {
			return failed(err)
		}
		conn, err := n.connect(r, addr)
		if err != nil {
			return failed(err)
		}
		return conn, nil
	}
}

func (n *network) connect(r route, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ln := n.listeners[addr]
	if ln == nil || n.wayLocked(r).refuses {
		return nil, syscall.ECONNREFUSED
	}
	w := newWire(n, r, addr)
	n.conns[w] = struct{}{}
	n.made++
	if n.wayLocked(r).state.HalfOpen || n.wayLocked(r.back()).state.HalfOpen {
		w.silenceLocked(r)
		w.silenceLocked(r.back())
		return w.dialer(), nil // accepted by the machine, and never heard of again
	}
	ln.queueLocked(w.accepted())
	return w.dialer(), nil
}

// trip returns how long a message that leaves now takes, and the bandwidth.
func (n *network) trip(w *way) (trip time.Duration, bytesPerSecond int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tripLocked(w), w.state.BytesPerSecond
}

func (n *network) tripLocked(w *way) time.Duration {
	trip := leastLatency + time.Duration(n.random.Int64N(int64(mostLatency-leastLatency))) + w.state.Delay
	if w.state.Jitter > 0 {
		trip += time.Duration(n.random.Int64N(int64(w.state.Jitter)))
	}
	return trip
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
