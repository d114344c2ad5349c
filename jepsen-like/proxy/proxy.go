package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Config says what a [Proxy] stands between. All fields are needed.
type Config struct {
	// Listen is where it listens, host:port. The port should be one that the system
	// gives to nobody by itself, since the listener comes and goes.
	Listen string
	// Target is the address behind it.
	Target string
	// Forth is the line from whoever connects to the target, Back the one back.
	Forth, Back *Line
}

const (
	// probeInterval is how often it is looked whether something listens behind.
	probeInterval = 20 * time.Millisecond
	// dialTimeout bounds a connection to the target, which is on this machine.
	dialTimeout = 2 * time.Second
)

// Proxy is one listener in front of one address. Its methods are safe for concurrent
// use.
type Proxy struct {
	cfg    Config
	ctx    context.Context
	stop   context.CancelFunc
	joined sync.WaitGroup
	// poke has tendLoop look again; one pending signal.
	poke chan struct{}

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	// up says that something listens behind; life counts how often that was denied, so
	// that a probe from before is not believed.
	up   bool
	life int
}

// Open starts a proxy. Until something listens at the target it refuses connections.
// The address to listen at is tried once, so that one in use is an error here.
func Open(cfg Config) (*Proxy, error) {
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("open a proxy: %w", err)
	}
	if err := ln.Close(); err != nil {
		return nil, fmt.Errorf("open a proxy: %w", err)
	}
	p := &Proxy{cfg: cfg, poke: make(chan struct{}, 1), links: map[*link]struct{}{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	cfg.Forth.join(p)
	cfg.Back.join(p)
	p.joined.Go(p.tendLoop)
	p.joined.Go(p.resetLoop)
	return p, nil
}

// Addr returns where the proxy listens.
func (p *Proxy) Addr() string { return p.cfg.Listen }

// Down tells that nothing listens behind any more. When it returns, connections are
// refused, unless a cut line would keep the refusal from arriving. What is connected
// ends by itself, as far as the lines let that through.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = false
	p.life++
	p.tendLocked()
}

// Close resets all connections, and returns when nothing of the proxy runs any more.
// Idempotent.
func (p *Proxy) Close() {
	p.cfg.Forth.leave(p)
	p.cfg.Back.leave(p)
	p.stop()
	p.mu.Lock()
	p.closeListenerLocked()
	p.resetLocked(func(*link) bool { return true })
	p.mu.Unlock()
	p.joined.Wait()
}

// Reset resets all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetLocked(func(*link) bool { return true })
}

func (p *Proxy) resetLocked(which func(*link) bool) {
	for l := range p.links {
		if which(l) {
			l.reset()
		}
	}
}

// holds reports whether neither a connection nor its refusal gets through, and silent
// whether a connection gets through and then nothing.
func (p *Proxy) holds() (holds, silent bool) {
	forth, _ := p.cfg.Forth.look()
	back, _ := p.cfg.Back.look()
	return forth.Cut || back.Cut, forth.HalfOpen || back.HalfOpen
}

// lineChanged does at once what a new state of a line asks for: connections that were
// silent are forgotten by one side when they are so no longer, and reset.
func (p *Proxy) lineChanged() {
	_, silent := p.holds()
	p.mu.Lock()
	defer p.mu.Unlock()
	if silent {
		for l := range p.links {
			l.silent.Store(true)
		}
	} else {
		p.resetLocked(func(l *link) bool { return l.silent.Load() })
	}
	p.tendLocked()
	signal(p.poke)
}

// tendLoop looks whether something listens behind, until the proxy is closed.
func (p *Proxy) tendLoop() {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		p.probe()
		select {
		case <-p.ctx.Done():
			return
		case <-p.poke:
		case <-ticker.C:
		}
	}
}

// probe connects to the target, if that is not known to be there.
func (p *Proxy) probe() {
	p.mu.Lock()
	up, life := p.up, p.life
	p.mu.Unlock()
	there := up
	if !up {
		if conn, err := p.dialTarget(); err == nil {
			_ = conn.Close()
			there = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == life {
		p.up = there
	}
	p.tendLocked()
}

// tendLocked opens or closes the listener.
func (p *Proxy) tendLocked() {
	holds, silent := p.holds()
	if !p.up && !holds && !silent {
		p.closeListenerLocked()
		return
	}
	if p.listener != nil || p.ctx.Err() != nil {
		return
	}
	ln, err := net.Listen("tcp", p.cfg.Listen)
	if err != nil {
		return // tried again at the next look
	}
	p.listener = ln
	p.joined.Go(func() { p.acceptLoop(ln) })
}

func (p *Proxy) closeListenerLocked() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

func (p *Proxy) acceptLoop(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, and the like: it may pass
			select {
			case <-p.ctx.Done():
			case <-time.After(probeInterval):
			}
		default:
			p.serve(conn.(*net.TCPConn))
		}
	}
}

func (p *Proxy) serve(conn *net.TCPConn) {
	l := newLink(p, conn)
	_, silent := p.holds()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		abort(conn)
		return
	}
	l.silent.Store(silent)
	p.links[l] = struct{}{}
	p.joined.Go(func() {
		l.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

// dialTarget connects to the target. That it refuses takes the listener down.
func (p *Proxy) dialTarget() (*net.TCPConn, error) {
	p.mu.Lock()
	life := p.life
	p.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(p.ctx, "tcp", p.cfg.Target)
	if errors.Is(err, syscall.ECONNREFUSED) {
		p.mu.Lock()
		if p.life == life && p.up {
			p.up = false
			p.tendLocked()
		}
		p.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// resetLoop resets all connections again and again while a line says so.
func (p *Proxy) resetLoop() {
	for {
		forth, forthChanged := p.cfg.Forth.look()
		back, backChanged := p.cfg.Back.look()
		every := forth.ResetEvery
		if every == 0 || back.ResetEvery > 0 && back.ResetEvery < every {
			every = back.ResetEvery
		}
		var due <-chan time.Time
		if every > 0 {
			due = time.After(every)
		}
		select {
		case <-p.ctx.Done():
			return
		case <-forthChanged:
		case <-backChanged:
		case <-due:
			p.Reset()
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
