package proxy_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/internal/portblock/porttest"
	"github.com/leasenode/leasenode/jepsen-like/proxy"
)

const (
	// patience is how long anything may take on a busy machine; moment is how long
	// something has to stay away to be taken as held up.
	patience = 20 * time.Second
	moment   = 100 * time.Millisecond
)

// scene is a proxy in front of a target that hands over what connects to it.
type scene struct {
	t           *testing.T
	proxy       *proxy.Proxy
	forth, back *proxy.Line
	target      string
	accepted    chan net.Conn
	listener    net.Listener
	joined      sync.WaitGroup // what listens
	readers     sync.WaitGroup // what waits for a connection's first byte
}

func newScene(t *testing.T) *scene {
	t.Helper()
	addrs := porttest.Addrs(t, 2)
	s := &scene{t: t, forth: proxy.NewLine(), back: proxy.NewLine(), target: addrs[0], accepted: make(chan net.Conn, 100)}
	p, err := proxy.Open(proxy.Config{Listen: addrs[1], Target: s.target, Forth: s.forth, Back: s.back})
	if err != nil {
		t.Fatal(err)
	}
	s.proxy = p
	t.Cleanup(func() {
		s.proxy.Close()
		s.leave()
		s.readers.Wait()
		close(s.accepted)
		for conn := range s.accepted {
			_ = conn.Close()
		}
	})
	s.enter()
	return s
}

// enter has the target listen.
func (s *scene) enter() {
	s.t.Helper()
	ln, err := net.Listen("tcp", s.target)
	if err != nil {
		s.t.Fatal(err)
	}
	s.listener = ln
	s.joined.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.readers.Go(func() {
				if n, _ := conn.Read(make([]byte, 1)); n == 0 { // a probe
					_ = conn.Close()
					return
				}
				s.accepted <- conn
			})
		}
	})
}

// leave has the target refuse.
func (s *scene) leave() {
	_ = s.listener.Close()
	s.joined.Wait()
}

// dial connects to the proxy, once that listens.
func (s *scene) dial() *net.TCPConn {
	s.t.Helper()
	var conn net.Conn
	s.eventually("the proxy accepts", func() (ok bool) {
		var err error
		conn, err = net.Dial("tcp", s.proxy.Addr())
		return err == nil
	})
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// pair returns both ends of a connection.
func (s *scene) pair() (client, server *net.TCPConn) {
	s.t.Helper()
	client = s.dial()
	s.send(client, "!")
	return client, s.accept()
}

func (s *scene) accept() *net.TCPConn {
	s.t.Helper()
	select {
	case conn := <-s.accepted:
		s.t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.TCPConn)
	case <-time.After(patience):
		s.t.Fatal("nothing arrived at the target")
		return nil
	}
}

func (s *scene) send(conn net.Conn, text string) {
	s.t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) expect(conn net.Conn, text string) {
	s.t.Helper()
	got := make([]byte, len(text))
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		s.t.Fatalf("got %q, %v; want %q", got, err, text)
	}
}

// silence fails the test if something arrives at conn within a moment.
func (s *scene) silence(conn net.Conn) {
	s.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(moment))
	n, err := conn.Read(make([]byte, 1))
	if timeout, ok := errors.AsType[net.Error](err); n > 0 || !ok || !timeout.Timeout() {
		s.t.Fatalf("%d bytes, %v; want silence", n, err)
	}
}

func (s *scene) expectReset(conn net.Conn) {
	s.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		s.t.Fatalf("%v; want a reset", err)
	}
}

func (s *scene) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
