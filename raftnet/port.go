package raftnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/fsm"
)

// PortConfig are the parts of a [Port].
type PortConfig struct {
	// Identity is this node's; the port reads it and never changes it.
	Identity *Identity
	// APIAddr is the API address that other nodes pass on to clients.
	APIAddr string
	// Listener is where peers connect. The port closes it.
	Listener net.Listener
	// Dial connects to an address that AddrOf gave.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// AddrOf tells where to dial a node.
	AddrOf func(id string) (string, bool)
	Logger hclog.Logger
}

// Port is the one port through which a node talks to its peers, so that one cut
// cuts all of it. Each connection begins with a hello on both sides, and is judged
// by the table in this node's own file: a node that is not in it, or is in it with
// another incarnation, an earlier start of a node that was met since, and a second
// process on a copy of a directory are refused in both directions. Safe for
// concurrent use.
type Port struct {
	cfg    PortConfig
	ctx    context.Context
	stop   context.CancelFunc
	joined sync.WaitGroup
	lanes  map[Purpose]*lane
	// presence is of the raft connections that peers made.
	presence *presence

	mu      sync.Mutex
	peers   map[string]Hello // the latest hello of each peer
	table   Table            // empty until the cluster is founded
	meeting *Founding        // while it is being founded
	lagging map[net.Conn]struct{}
	// refusals are the reasons for which other nodes refused this one last.
	refusals map[string]string
	find     func(context.Context, Question) Finding // see [Port.Answer]
}

// helloTimeout bounds a handshake: longer than a loaded machine needs, short enough
// that a stranger that says nothing does not stay.
const helloTimeout = 3 * time.Second

// OpenPort starts to listen. Until [Port.Serve] is called only founding nodes are
// answered.
func OpenPort(cfg PortConfig) *Port {
	p := &Port{cfg: cfg, peers: map[string]Hello{}, lanes: map[Purpose]*lane{}, lagging: map[net.Conn]struct{}{}, refusals: map[string]string{}, presence: newPresence()}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for _, purpose := range []Purpose{PurposeRaft, PurposeCall} {
		p.lanes[purpose] = newLane(cfg.Listener.Addr())
	}
	p.joined.Go(p.acceptLoop)
	return p
}

// Serve admits the connections of the founders in t.
func (p *Port) Serve(t Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table, p.meeting = t, nil
}

// Listener returns the connections for a purpose, [PurposeRaft] or [PurposeCall].
// Closing it refuses later ones.
func (p *Port) Listener(purpose Purpose) net.Listener { return p.lanes[purpose] }

// APIAddr returns the API address that node id told last, "" if it was not met.
func (p *Port) APIAddr(id string) string {
	if id == p.cfg.Identity.ID {
		return p.cfg.APIAddr
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peers[id].APIAddr
}

// Awaited returns the nodes that are still awaited while the cluster is being founded.
func (p *Port) Awaited() []string {
	p.mu.Lock()
	meeting := p.meeting
	p.mu.Unlock()
	if meeting == nil {
		return nil
	}
	return meeting.awaited()
}

// Close stops listening, closes connections that were not handed out yet, and
// returns when all its goroutines have ended. Idempotent.
func (p *Port) Close() error {
	p.stop()
	err := p.cfg.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for _, l := range p.lanes {
		_ = l.Close()
	}
	p.mu.Lock()
	for conn := range p.lagging {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.joined.Wait()
	return err
}

// Dial connects to a node for a purpose. A [*RefusedError] says that one of the two
// will not talk to the other.
func (p *Port) Dial(ctx context.Context, id string, purpose Purpose) (net.Conn, error) {
	conn, _, err := p.dial(ctx, id, purpose)
	return conn, err
}

func (p *Port) dial(ctx context.Context, id string, purpose Purpose) (net.Conn, Hello, error) {
	return p.dialWith(ctx, id, p.hello(purpose))
}

// dialWith dials a node and says hello.
func (p *Port) dialWith(ctx context.Context, id string, hello Hello) (net.Conn, Hello, error) {
	addr, ok := p.cfg.AddrOf(id)
	if !ok {
		return nil, Hello{}, fmt.Errorf("dial node %q: its address is not known", id)
	}
	conn, err := p.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, Hello{}, fmt.Errorf("dial node %q: %w", id, err)
	}
	answer, err := p.greet(ctx, conn, hello)
	if err == nil && answer.ID != id {
		err = &RefusedError{ID: id, Reason: fmt.Sprintf("node %q answered at %s; is an address wrong in --cluster or --dial?", answer.ID, addr)}
	}
	if err == nil && answer.Refusal != "" {
		err = &RefusedError{ID: id, Reason: "it refuses this node: " + answer.Refusal}
		if hello.Purpose != PurposeProbe { // an earlier version does not know it, and need not
			p.tellRefusal(id, answer.Refusal)
		}
	}
	if err == nil && hello.Purpose != PurposeWho {
		err = p.judge(answer)
	}
	if err != nil {
		_ = conn.Close()
		return nil, answer, err
	}
	return conn, answer, nil
}

// tellRefusal logs why another node refuses this one, once for each reason: somebody
// has to do something about it.
func (p *Port) tellRefusal(id, reason string) {
	p.mu.Lock()
	told := p.refusals[id] == reason
	p.refusals[id] = reason
	founded := len(p.table) > 0
	p.mu.Unlock()
	if founded && !told {
		p.cfg.Logger.Error("a node refuses this one", "node", id, "reason", reason)
	}
}

// greet says hello on a connection that this node made, and returns the answer.
func (p *Port) greet(ctx context.Context, conn net.Conn, hello Hello) (Hello, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	if err := writeHello(conn, hello); err != nil {
		return Hello{}, fmt.Errorf("say hello: %w", err)
	}
	answer, err := readHello(conn)
	if err != nil {
		return Hello{}, err
	}
	if !stop() {
		return Hello{}, context.Cause(ctx)
	}
	return answer, conn.SetDeadline(time.Time{})
}

func (p *Port) hello(purpose Purpose) Hello {
	id := p.cfg.Identity
	h := Hello{ID: id.ID, Incarnation: id.Incarnation, Starts: id.Starts, Boot: id.Boot, Purpose: purpose, APIAddr: p.cfg.APIAddr, EntryVersion: fsm.EntryVersion}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.table) > 0 {
		h.Cluster = p.table.ClusterID()
		if purpose == PurposeFound {
			h.Founding = &FoundingView{Founded: p.table}
		}
	} else if p.meeting != nil {
		h.Founding = p.meeting.view()
	}
	return h
}

func (p *Port) acceptLoop() {
	for {
		conn, err := p.cfg.Listener.Accept()
		switch {
		case p.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // too many open files, and the like: it may pass
			p.cfg.Logger.Error("cannot accept a peer's connection", "error", err)
			select {
			case <-p.ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		default:
			p.joined.Go(func() { p.receive(conn) })
		}
	}
}

// receive answers the hello of a connection that a peer made, outside of the accept
// loop and with a deadline, and hands the connection to its lane.
func (p *Port) receive(conn net.Conn) {
	if !p.track(conn) {
		_ = conn.Close()
		return
	}
	hello, err := p.answer(conn)
	p.untrack(conn)
	if err == nil && hello.Purpose == PurposeRaft {
		conn = p.presence.enter(hello, conn)
	}
	if lane := p.lanes[hello.Purpose]; err == nil && lane != nil && lane.hand(conn) {
		return
	}
	if err != nil && p.ctx.Err() == nil {
		p.cfg.Logger.Debug("refused a connection", "from", conn.RemoteAddr().String(), "node", hello.ID, "error", err)
	}
	_ = conn.Close()
}

func (p *Port) answer(conn net.Conn) (Hello, error) {
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	hello, err := readHello(conn)
	if err != nil {
		return Hello{}, err
	}
	err = p.admit(hello)
	answer := p.hello(hello.Purpose)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		answer.Refusal = refused.Reason
	}
	if err == nil && hello.Purpose == PurposeProbe && hello.Question != nil {
		answer.Finding = p.answerQuestion(*hello.Question)
	}
	if werr := writeHello(conn, answer); werr != nil {
		return hello, errors.Join(err, werr)
	}
	if err != nil {
		return hello, err
	}
	return hello, conn.SetDeadline(time.Time{})
}

func (p *Port) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.lagging[conn] = struct{}{}
	return true
}

func (p *Port) untrack(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lagging, conn)
}
