package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// server is one whose process can be stopped and go on: connections to it are taken, and
// what is sent is kept, up to a size, but nothing is read. It runs in a bubble.
type server struct {
	*bufconn.Listener
	mu      sync.Mutex
	running chan struct{} // closed while it runs
}

func (s *server) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	return &stoppedConn{Conn: conn, server: s, closed: make(chan struct{})}, err
}

func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = make(chan struct{})
}

func (s *server) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running)
}

type stoppedConn struct {
	net.Conn
	server *server
	once   sync.Once
	closed chan struct{}
}

func (c *stoppedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.server.mu.Lock()
	running := c.server.running
	c.server.mu.Unlock()
	select {
	case <-running:
	case <-c.closed:
	}
	return n, err
}

func (c *stoppedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// runInBubble serves s until the test ends, and returns a connection as clients have it.
func runInBubble(t *testing.T, s *script) (*server, *bundle.Conn) {
	t.Helper()
	road := &server{Listener: bufconn.Listen(64 << 10), running: make(chan struct{})}
	close(road.running)
	g := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))
	leasepb.RegisterLeaseServiceServer(g, s)
	leasepb.RegisterBundleServiceServer(g, s)
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(road) }()
	t.Cleanup(func() { g.Stop(); <-served })
	under, err := grpc.NewClient("passthrough:///n1", append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return road.DialContext(ctx) }),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	conn := bundle.Over(under)
	t.Cleanup(func() { _ = conn.Close() })
	return road, conn
}

// TestACallMayComeAsItsStreamIsClosed has calls come in the very moment in which a stream
// that is idle ends, many times: each is done, once.
func TestACallMayComeAsItsStreamIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, callers = 300, 4
		s := &script{bundle: answers}
		_, conn := runInBubble(t, s)
		for round := range rounds {
			var calling sync.WaitGroup
			for caller := range callers {
				calling.Go(func() {
					key := fmt.Sprintf("%d-%d", round, caller)
					if got, err := renew(t.Context(), conn, key); err != nil || got != key {
						t.Errorf("renew %q: answered with %q, %v", key, got, err)
					}
				})
			}
			calling.Wait()
			time.Sleep(4 * time.Second) // it is looked at every 2 s
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if c := s.counts(); c.calls != rounds*callers || c.plain != 0 || c.streams < 2 || c.ended != c.streams {
			t.Errorf("%d calls came as %+v", rounds*callers, c)
		}
	})
}

// TestAServerThatIsStopped takes what is sent, and answers nothing. Its callers get away in
// their time, and are told that a call is certainly not done only if it is not done
// when the server goes on.
func TestAServerThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{bundle: answers}
		server, conn := runInBubble(t, s)
		if _, err := renew(t.Context(), conn, "before"); err != nil {
			t.Fatal(err)
		}
		server.stop()
		notDone, unknown := callInVain(t, conn)
		if len(notDone) == 0 || len(unknown) == 0 {
			t.Errorf("%d are told to be not done, %d unknown: want both", len(notDone), len(unknown))
		}
		server.goOn()
		if _, err := renew(t.Context(), conn, "after"); err != nil {
			t.Error(err)
		}
		done := map[string]bool{}
		for _, message := range s.sent() {
			for _, call := range message {
				for _, key := range notDone {
					done[key] = done[key] || strings.Contains(string(call.GetRequest()), key)
				}
			}
		}
		for _, key := range notDone {
			if done[key] {
				t.Errorf("%s came, and was told to be not done", key)
			}
		}
		if c := s.counts(); c.streams != 1 {
			t.Errorf("got %+v", c)
		}
	})
}

// callInVain makes many calls with a time of 1 s, and returns the keys of those that are
// told to be not done, and the others'.
func callInVain(t *testing.T, conn grpc.ClientConnInterface) (notDone, unknown []string) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var mu sync.Mutex
	var calling sync.WaitGroup
	for n := range 400 {
		calling.Go(func() {
			key := fmt.Sprintf("<%d>", n)
			_, err := leasepb.NewLeaseServiceClient(conn).Renew(ctx, &leasepb.RenewRequest{Key: []byte(key), Owner: make([]byte, 4000)})
			mu.Lock()
			defer mu.Unlock()
			switch err = wire.FromCall(err, wire.Mutates); {
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%s: got %v", key, err)
			case errors.Is(err, lease.ErrUnavailable):
				notDone = append(notDone, key)
			case errors.Is(err, lease.ErrOutcomeUnknown):
				unknown = append(unknown, key)
			}
		})
	}
	calling.Wait()
	if took := time.Since(began); took != time.Second {
		t.Errorf("it took %v", took)
	}
	return notDone, unknown
}

// TestAServerThatStaysStoppedIsGivenUp ends a call without a deadline when the connection
// is found dead.
func TestAServerThatStaysStoppedIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{bundle: answers}
		server, conn := runInBubble(t, s)
		if _, err := renew(t.Context(), conn, "before"); err != nil {
			t.Fatal(err)
		}
		server.stop()
		began := time.Now()
		_, err := renew(t.Context(), conn, "k")
		if got := wire.FromCall(err, wire.Mutates); !errors.Is(got, lease.ErrOutcomeUnknown) || time.Since(began) > 25*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		server.goOn()
		time.Sleep(5 * time.Second)
		if _, err := renew(t.Context(), conn, "after"); err != nil {
			t.Error(err)
		}
		if c := s.counts(); c.streams != 2 {
			t.Errorf("got %+v", c)
		}
	})
}

// TestAStreamThatIsNotEndedIsLeft closes a stream to a server that does not care.
func TestAStreamThatIsNotEndedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{bundle: func(s *script, stream bidi) error {
			err := answers(s, stream)
			<-stream.Context().Done()
			return err
		}}
		_, conn := runInBubble(t, s)
		for range 3 {
			if _, err := renew(t.Context(), conn, "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
		}
		if c := s.counts(); c.streams != 3 || c.ended != 3 {
			t.Errorf("got %+v", c)
		}
	})
}
