package raftnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Transport is what carries raft's messages. [NewTransport] makes the real one; a
// simulation brings its own.
type Transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// rpcTimeout bounds a message between nodes, and so how long a black hole can hold
// up the goroutine that talks to one peer.
const rpcTimeout = 3 * time.Second

// NewTransport returns the transport over port. Nodes are dialed by id, so that an
// address is resolved anew each time. Closing the transport closes the port's raft
// connections.
func NewTransport(port *Port, logger hclog.Logger) Transport {
	return &netTransport{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: idAddresses{},
		Stream:                &stream{Listener: port.Listener(PurposeRaft), port: port},
		MaxPool:               3,
		Timeout:               rpcTimeout,
		// Two or more can stop replication to a follower for good when it falls behind.
		MaxRPCsInFlight: 1,
		Logger:          logger,
	})}
}

// netTransport closes the pooled connections too when it is closed.
type netTransport struct{ *raft.NetworkTransport }

func (t *netTransport) Close() error {
	err := t.NetworkTransport.Close()
	t.CloseStreams()
	return err
}

// idAddresses has raft dial by id: stream finds the address.
type idAddresses struct{}

func (idAddresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	return raft.ServerAddress(id), nil
}

type stream struct {
	net.Listener
	port *Port
}

func (s *stream) Dial(id raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.port.ctx, timeout)
	defer cancel()
	return s.port.Dial(ctx, string(id), PurposeRaft)
}

// witness is the transport as raft gets it. It sees every AppendEntries leave and
// return, and so can tell what a majority has answered since a given moment.
type witness struct {
	Transport
	abstain func() bool
	sent    atomic.Uint64 // AppendEntries that have been sent, or are about to be

	mu   sync.Mutex
	acks map[raft.ServerID]ack

	// answered gets a signal, never more than one pending, when an ack was noted.
	answered chan struct{}
}

// ack is the latest answer of a peer in the latest term.
type ack struct {
	term uint64
	sent uint64 // the number of the request that was answered
}

func newWitness(t Transport, abstain func() bool) *witness {
	return &witness{Transport: t, abstain: abstain, acks: map[raft.ServerID]ack{}, answered: make(chan struct{}, 1)}
}

// SetHeartbeatHandler leaves the fast path off: it would change this node's term on
// a connection's goroutine, under a leader loop that is about to append.
func (w *witness) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntriesPipeline refuses: every AppendEntries goes through AppendEntries.
func (w *witness) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries notes who answered what. An answer counts whether it is a success or
// not, since it says which term its node is in; one of another term does not.
func (w *witness) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	number := w.sent.Add(1)
	if err := w.Transport.AppendEntries(id, target, args, resp); err != nil {
		return err
	}
	if resp.Term == args.Term {
		w.note(id, ack{term: args.Term, sent: number})
	}
	return nil
}

func (w *witness) note(id raft.ServerID, a ack) {
	w.mu.Lock()
	last := w.acks[id]
	if a.term > last.term || a.term == last.term && a.sent > last.sent {
		w.acks[id] = a
	}
	w.mu.Unlock()
	select {
	case w.answered <- struct{}{}:
	default:
	}
}

// round names what a confirmation asks for: answers in the term to requests that
// were sent after.
type round struct {
	term  uint64
	after uint64
}

// confirmed reports whether a majority of the voters, of which self is one or not,
// has answered in round r.
func (w *witness) confirmed(r round, self raft.ServerID, voters []raft.ServerID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, id := range voters {
		a := w.acks[id]
		if id == self || a.term == r.term && a.sent > r.after {
			count++
		}
	}
	return count > len(voters)/2
}

// RequestVote and RequestPreVote are tried again when a pooled connection turns out
// to be to an earlier life of the peer: raft itself would not ask again in that
// election. Both may be repeated. A node that abstains asks nobody, and so is not
// elected.

var errAbstains = errors.New("this node does not stand for election now: it could not write its log")

// RequestVote asks for a vote.
func (w *witness) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if w.abstain() {
		return errAbstains
	}
	return retryStale(func() error { return w.Transport.RequestVote(id, target, args, resp) })
}

// RequestPreVote asks whether a vote would be given.
func (w *witness) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if w.abstain() {
		return errAbstains
	}
	return retryStale(func() error { return w.Transport.RequestPreVote(id, target, args, resp) })
}

// staleTries is one more than the connections that can be pooled to a peer.
const staleTries = 4

func retryStale(call func() error) error {
	var err error
	for range staleTries {
		err = call()
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			return err
		}
	}
	return err
}
