package api

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
)

// line is a connection of a client, with what is on its way there to watchers.
type line struct {
	net.Conn
	out     *outgoing
	bundles atomic.Int32 // streams of bundles

	// What follows is guarded by out.mu.
	used    int // the sum of parcels
	parcels map[*parcel]struct{}
	claims  [standings][]*claim
}

// Close closes the connection. What was on its way is given up.
func (l *line) Close() error {
	err := l.Conn.Close()
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	for p := range l.parcels {
		p.releaseLocked()
	}
	l.out.serveLocked()
	return err
}

// keepsLocked returns the byte-seconds of the messages of l that have been on their way
// for longer than patience.
func (l *line) keepsLocked(now time.Time) float64 {
	keeps := 0.0
	for p := range l.parcels {
		if age := now.Sub(p.since); !p.since.IsZero() && age >= patience {
			keeps += age.Seconds() * float64(p.bytes)
		}
	}
	return keeps
}

// parcel is room for a message, and then that message until it is written. It is the pool
// that gRPC gives the memory of the message back to: that is how it comes to know.
type parcel struct {
	line *line
	gone chan struct{} // closed when it is released
	// making is whether the message is being made; it belongs to who makes it.
	making bool
	// dropped is whether the node has given the message up, with its connection.
	dropped atomic.Bool

	// What follows is guarded by line.out.mu.
	bytes    int
	since    time.Time // when it was sent; zero before
	released bool
}

var _ mem.BufferPool = (*parcel)(nil)

// made says that the message is made, or that somebody else may go first.
func (p *parcel) made() {
	if p.making {
		p.making = false
		<-p.line.out.making
	}
}

// giveBack releases a parcel that was not sent.
func (p *parcel) giveBack() {
	p.made()
	p.release()
}

// send returns the message as the codec takes it. What was taken for more than data has
// is given back.
func (p *parcel) send(data []byte) *packed {
	p.made()
	o := p.line.out
	o.mu.Lock()
	defer o.mu.Unlock()
	n := cap(data) + parcelBytes
	if !p.released {
		p.line.used += n - p.bytes
		o.used += n - p.bytes
	}
	p.bytes, p.since = n, time.Now()
	o.serveLocked()
	return &packed{data: data, parcel: p}
}

// release gives the room back. Idempotent.
func (p *parcel) release() {
	o := p.line.out
	o.mu.Lock()
	defer o.mu.Unlock()
	p.releaseLocked()
	o.serveLocked()
}

// releaseLocked is for callers that serve who waits afterwards.
func (p *parcel) releaseLocked() {
	if p.released {
		return
	}
	l := p.line
	p.released = true
	close(p.gone)
	delete(l.parcels, p)
	l.used -= p.bytes
	if l.out.used -= p.bytes; l.used == 0 {
		delete(l.out.lines, l)
	}
}

// Get implements [mem.BufferPool]. gRPC does not use it.
func (p *parcel) Get(length int) *[]byte { b := make([]byte, length); return &b }

// Put implements [mem.BufferPool]: gRPC has done with the message.
func (p *parcel) Put(*[]byte) { p.release() }

// lineCredentials make a line of each connection.
type lineCredentials struct {
	credentials.TransportCredentials
	out *outgoing
}

// lineInfo is what a handler can know of its connection.
type lineInfo struct {
	credentials.AuthInfo
	line *line
}

// ServerHandshake implements [credentials.TransportCredentials].
func (c lineCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	l := &line{Conn: conn, out: c.out, parcels: map[*parcel]struct{}{}}
	return l, lineInfo{info, l}, nil
}

// Clone implements [credentials.TransportCredentials].
func (c lineCredentials) Clone() credentials.TransportCredentials {
	return lineCredentials{c.TransportCredentials.Clone(), c.out}
}

// lineOf returns the connection that a call has come on; nil if the server does not make
// lines of them.
func lineOf(ctx context.Context) *line {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(lineInfo); ok {
			return info.line
		}
	}
	return nil
}
