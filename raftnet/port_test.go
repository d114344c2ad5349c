package raftnet_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/internal/portblock/porttest"
	"github.com/leasenode/leasenode/raftnet"
)

// peer is a node's identity and port on loopback, without the rest of it.
type peer struct {
	dir      string
	identity *raftnet.Identity
	port     *raftnet.Port
	addr     string
}

// peers opens ports that know each other's addresses.
type peers struct {
	t     *testing.T
	addrs map[string]string
	log   io.Writer    // may be nil
	dials atomic.Int64 // by all of them
}

func newPeers(t *testing.T, ids ...string) *peers {
	t.Helper()
	ps := &peers{t: t, addrs: map[string]string{}}
	addrs := porttest.Addrs(t, len(ids)) // a node that is closed listens there again
	for i, id := range ids {
		ps.addrs[id] = addrs[i]
	}
	return ps
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func (ps *peers) open(id, dir string) *peer {
	ps.t.Helper()
	return ps.openAt(id, ps.addrs[id], dir)
}

// openAt opens a port that listens elsewhere than where it is looked for.
func (ps *peers) openAt(id, listenAddr, dir string) *peer {
	ps.t.Helper()
	identity, err := raftnet.OpenIdentity(dir, id)
	if err != nil {
		ps.t.Fatal(err)
	}
	var dialer net.Dialer
	port := raftnet.OpenPort(raftnet.PortConfig{
		Identity: identity, APIAddr: "api-of-" + id, Listener: listen(ps.t, listenAddr),
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			ps.dials.Add(1)
			return dialer.DialContext(ctx, "tcp", addr)
		},
		AddrOf: func(id string) (string, bool) { addr, ok := ps.addrs[id]; return addr, ok },
		Logger: hclog.New(&hclog.LoggerOptions{Output: cmp.Or(ps.log, io.Discard)}),
	})
	p := &peer{dir: dir, identity: identity, port: port, addr: listenAddr}
	ps.t.Cleanup(p.close)
	if identity.ClusterID() != "" {
		port.Serve(identity.Table)
	}
	return p
}

func (p *peer) close() { _ = p.port.Close() }

func TestStrangersAreRefusedInBothDirections(t *testing.T) {
	ps := newPeers(t, "n1", "n2", "n3")
	dirs := map[string]string{"n1": t.TempDir(), "n2": t.TempDir(), "n3": t.TempDir()}
	all := []*peer{ps.open("n1", dirs["n1"]), ps.open("n2", dirs["n2"]), ps.open("n3", dirs["n3"])}
	ps.mustFound(all...)
	table := all[0].identity.Table
	reopen := func(change func(identity *raftnet.Identity)) *peer {
		identity, err := raftnet.OpenIdentity(t.TempDir(), "n3")
		if err != nil {
			t.Fatal(err)
		}
		identity.Incarnation, identity.Starts, identity.Table = all[2].identity.Incarnation, 9, table
		change(identity)
		if err := identity.SetJoined(); err != nil {
			t.Fatal(err)
		}
		return &peer{identity: identity}
	}
	refusals := map[string]func(*raftnet.Identity){
		"wiped or replaced": func(i *raftnet.Identity) { i.Incarnation = "other" },
		"of cluster": func(i *raftnet.Identity) {
			i.Table = append(raftnet.Table{}, table...)
			i.Table[0].Incarnation = "other"
		},
		"a later start": func(i *raftnet.Identity) { i.Starts = 0 },
	}
	met, err := all[0].port.Dial(within(t, 10*time.Second), "n3", raftnet.PurposeCall)
	if err != nil {
		t.Fatal(err)
	}
	_ = met.Close()
	all[2].close()
	for want, change := range refusals {
		stranger := reopen(change)
		var dialer net.Dialer
		stranger.port = raftnet.OpenPort(raftnet.PortConfig{
			Identity: stranger.identity, Listener: listen(t, ps.addrs["n3"]), Logger: hclog.NewNullLogger(),
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				ps.dials.Add(1)
				return dialer.DialContext(ctx, "tcp", addr)
			},
			AddrOf: func(id string) (string, bool) { addr, ok := ps.addrs[id]; return addr, ok },
		})
		stranger.port.Serve(stranger.identity.Table)
		var refused *raftnet.RefusedError
		if _, err := all[0].port.Dial(within(t, 10*time.Second), "n3", raftnet.PurposeRaft); !errors.As(err, &refused) {
			t.Errorf("%s: a member dials the stranger: %v", want, err)
		}
		if _, err := stranger.port.Dial(within(t, 10*time.Second), "n1", raftnet.PurposeRaft); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) && want != "of cluster" {
			t.Errorf("%s: the stranger dials a member: %v", want, err)
		}
		stranger.close()
	}
}

func TestPortSurvivesNoise(t *testing.T) {
	ps := newPeers(t, "n1", "n2")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2)
	silent, err := net.Dial("tcp", n1.addr) // holds its connection open and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, noise := range []string{"GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 100), "LNP1\x00\x00\x00\x05hello", "LNP1\xff\xff\xff\xff"} {
		conn, err := net.Dial("tcp", n1.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(noise))
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q was not hung up on", noise)
		}
		_ = conn.Close()
	}
	conn, err := n2.port.Dial(within(t, 10*time.Second), "n1", raftnet.PurposeCall)
	if err != nil {
		t.Fatalf("after the noise: %v", err)
	}
	_ = conn.Close()
}

// raft's heartbeats must take the same way as its other messages: the fast path
// changes the term under a leader that is about to append.
func TestHeartbeatsTakeNoFastPath(t *testing.T) {
	ps := newPeers(t, "n1", "n2")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2)
	from, to := raftnet.NewTransport(n1.port, hclog.NewNullLogger()), raftnet.NewWitness(raftnet.NewTransport(n2.port, hclog.NewNullLogger()))
	defer from.Close()
	defer to.Close()
	fast := make(chan struct{}, 1)
	to.SetHeartbeatHandler(func(rpc raft.RPC) { // as raft does
		fast <- struct{}{}
		rpc.Respond(&raft.AppendEntriesResponse{}, nil)
	})
	answered := make(chan error, 1)
	go func() {
		var resp raft.AppendEntriesResponse
		answered <- from.AppendEntries("n2", "n2", &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("n1"), Addr: []byte("n1")}, Term: 3}, &resp)
	}()
	select {
	case rpc := <-to.Consumer():
		rpc.Respond(&raft.AppendEntriesResponse{Term: 3}, nil)
	case <-fast:
		t.Error("the heartbeat took the fast path")
	case <-time.After(time.Minute):
		t.Error("the heartbeat never came")
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if _, err := from.AppendEntriesPipeline("n2", "n2"); !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
		t.Errorf("a pipeline: %v", err)
	}
}

// A copy of a running node's directory, started elsewhere: its peers find the first
// process at the address, and refuse the copy.
func TestACopyBesideTheFirstIsRefused(t *testing.T) {
	ps := newPeers(t, "n1", "n2", "n3")
	all := []*peer{ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir()), ps.open("n3", t.TempDir())}
	ps.mustFound(all...)
	elsewhere := &peers{t: t, addrs: map[string]string{"n1": ps.addrs["n1"], "n2": ps.addrs["n2"], "n3": newPeers(t, "n3").addrs["n3"]}}
	copied := elsewhere.open("n3", copyDir(t, all[2].dir))
	var refused *raftnet.RefusedError
	if _, err := copied.port.Dial(within(t, 10*time.Second), "n1", raftnet.PurposeRaft); !errors.As(err, &refused) || !strings.Contains(err.Error(), "stop one of the two") {
		t.Errorf("the copy dials a member: %v", err)
	}
	conn, err := all[2].port.Dial(within(t, 10*time.Second), "n1", raftnet.PurposeRaft)
	if err != nil {
		t.Fatalf("the first dials a member: %v", err)
	}
	_ = conn.Close()
}

// An older copy of a directory is refused by who has met a later start, also after
// that one was restarted; and so is a second process that counts the same start.
func TestAnOlderCopyIsRefused(t *testing.T) {
	ps := newPeers(t, "n1", "n2")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2)
	older := copyDir(t, n2.dir)
	meet := func() {
		t.Helper()
		conn, err := n2.port.Dial(within(t, 10*time.Second), "n1", raftnet.PurposeRaft)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	n2.close()
	n2 = ps.open("n2", n2.dir) // its second start
	meet()
	n2.close()
	n1.close()
	n1 = ps.open("n1", n1.dir)
	n2 = ps.open("n2", older) // the second start of the copy
	if _, err := n2.port.Dial(within(t, 10*time.Second), "n1", raftnet.PurposeRaft); err == nil || !strings.Contains(err.Error(), "copy of its data directory") {
		t.Errorf("the same start of a copy: %v", err)
	}
	if _, err := n1.port.Dial(within(t, 10*time.Second), "n2", raftnet.PurposeRaft); err == nil {
		t.Error("a member dials the copy")
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// A peer's name is resolved each time it is dialed: one that stands for another address
// after a restart is found there.
func TestANameIsResolvedAtEachDial(t *testing.T) {
	before, after := newPeers(t, "n1", "n2"), newPeers(t, "n2")
	names := map[string]string{"one.test:1": before.addrs["n1"], "two.test:1": before.addrs["n2"]}
	var mu sync.Mutex
	var dialer net.Dialer
	resolve := func(ctx context.Context, name string) (net.Conn, error) {
		mu.Lock()
		addr := names[name]
		mu.Unlock()
		return dialer.DialContext(ctx, "tcp", addr)
	}
	list := map[string]string{"n1": "one.test:1", "n2": "two.test:1"}
	open := func(id, dir, addr string) *peer {
		t.Helper()
		identity, err := raftnet.OpenIdentity(dir, id)
		if err != nil {
			t.Fatal(err)
		}
		p := &peer{dir: dir, identity: identity, port: raftnet.OpenPort(raftnet.PortConfig{
			Identity: identity, Listener: listen(t, addr), Dial: resolve, Logger: hclog.NewNullLogger(),
			AddrOf: func(id string) (string, bool) { name, ok := list[id]; return name, ok },
		})}
		t.Cleanup(p.close)
		if identity.ClusterID() != "" {
			p.port.Serve(identity.Table)
		}
		return p
	}
	n1, n2 := open("n1", t.TempDir(), before.addrs["n1"]), open("n2", t.TempDir(), before.addrs["n2"])
	(&peers{t: t, addrs: list}).mustFound(n1, n2)
	n2.close()
	mu.Lock()
	names["two.test:1"] = after.addrs["n2"]
	mu.Unlock()
	open("n2", n2.dir, after.addrs["n2"])
	conn, err := n1.port.Dial(within(t, 10*time.Second), "n2", raftnet.PurposeRaft)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
