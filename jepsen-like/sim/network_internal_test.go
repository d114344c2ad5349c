package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// wired is a network of two hosts, 0 and 1, of which 0 has dialed 1.
type wired struct {
	*network
	t    *testing.T
	a, b net.Conn
}

const (
	there = "b:1"
	// soon is more than a message takes over a healthy network.
	soon = 2 * mostLatency
)

func onAWire(t *testing.T, act func(w *wired)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wired{network: newNetwork(1), t: t}
		ln, err := w.listen(1, there)
		if err != nil {
			t.Fatal(err)
		}
		if w.a, err = w.dial(t.Context(), 0, 1, there); err != nil {
			t.Fatal(err)
		}
		if w.b, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		act(w)
		if err := errors.Join(w.a.Close(), w.b.Close()); err != nil {
			t.Error(err)
		}
		_ = ln.Close() // a dead host's is closed already
		w.close()
	})
}

func (w *wired) send(c net.Conn, text string) {
	w.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		w.t.Errorf("write: %v", err)
	}
}

// receive returns what arrives within a time.
func (w *wired) receive(c net.Conn, length time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(length))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	b := make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), err
}

func (w *wired) expect(c net.Conn, text string) {
	w.t.Helper()
	if got, err := w.receive(c, soon); got != text || err != nil {
		w.t.Errorf("got %q, %v, want %q", got, err, text)
	}
}

func (w *wired) expectNothing(c net.Conn) {
	w.t.Helper()
	if got, err := w.receive(c, time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Errorf("got %q, %v, want nothing", got, err)
	}
}

func TestACutWayHoldsOneDirection(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		w.set(route{0, 1}, nemesis.LinkState{Cut: true})
		w.send(w.a, "1")
		w.send(w.a, "2")
		w.send(w.b, "back")
		w.expect(w.a, "back")
		w.expectNothing(w.b)
		if _, err := w.dial(expired(t), 0, 1, there); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial over it: %v", err)
		}
		w.set(route{0, 1}, nemesis.LinkState{})
		w.expect(w.b, "12")
	})
}

// expired returns a context that ends in a second.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestDelayAndBandwidth(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		w.set(route{0, 1}, nemesis.LinkState{Delay: 100 * time.Millisecond})
		began := time.Now()
		w.send(w.a, "x")
		if _, err := w.receive(w.b, time.Second); err != nil || time.Since(began) < 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		w.set(route{0, 1}, nemesis.LinkState{BytesPerSecond: 10})
		began = time.Now()
		w.send(w.a, "0123456789")
		if _, err := w.receive(w.b, 2*time.Second); err != nil || time.Since(began) < time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestNobodyThere(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		if _, err := w.dial(t.Context(), 0, 1, "b:2"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v", err)
		}
	})
}

func TestResets(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		w.set(route{1, 0}, nemesis.LinkState{ResetEvery: 10 * time.Millisecond})
		time.Sleep(11 * time.Millisecond)
		for _, c := range []net.Conn{w.a, w.b} {
			if _, err := w.receive(c, soon); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestHalfOpenIsSilentForGood(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		w.set(route{0, 1}, nemesis.LinkState{HalfOpen: true})
		w.send(w.a, "lost")
		late, err := w.dial(t.Context(), 0, 1, there)
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		w.set(route{0, 1}, nemesis.LinkState{})
		w.send(w.a, "lost too")
		w.expectNothing(w.b)
		w.expectNothing(late)
	})
}

func TestADeadHost(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		w.send(w.a, "last")
		w.down(0)
		if _, err := w.a.Write([]byte("ghost")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a ghost writes: %v", err)
		}
		w.expect(w.b, "last")
		if _, err := w.receive(w.b, soon); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("its peer hears %v", err)
		}
		w.down(1)
		if _, err := w.dial(t.Context(), 0, 1, there); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("its place: %v", err)
		}
	})
}

// Whoever closes is heard after what it has written; until then writing to it does not
// fail, since nobody can know.
func TestClose(t *testing.T) {
	onAWire(t, func(w *wired) {
		t := w.t
		w.send(w.a, "bye")
		_ = w.a.Close()
		w.send(w.b, "into the void")
		w.expect(w.b, "bye")
		if _, err := w.receive(w.b, soon); !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
	})
}
