package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/proxy"
)

func TestAHealthyLinkCarriesEverythingAndItsEnd(t *testing.T) {
	s := newScene(t)
	client, server := s.pair()
	much := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	var sent sync.WaitGroup
	for _, conn := range []*net.TCPConn{client, server} {
		sent.Go(func() {
			if _, err := conn.Write(much); err != nil {
				t.Error(err)
			}
			_ = conn.CloseWrite()
		})
	}
	for _, conn := range []*net.TCPConn{client, server} {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(got, much) {
			t.Errorf("%d bytes of %d arrived, %v", len(got), len(much), err)
		}
	}
	sent.Wait()
}

// A cut is of one direction, holds bytes and the end, and lets them go on afterwards.
func TestCut(t *testing.T) {
	s := newScene(t)
	client, server := s.pair()
	s.forth.Set(nemesis.LinkState{Cut: true})
	s.send(client, "held")
	s.silence(server)
	s.send(server, "the other way")
	s.expect(client, "the other way")
	_ = client.CloseWrite()
	s.silence(server)
	s.forth.Set(nemesis.LinkState{})
	s.expect(server, "held")
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v; want the end", err)
	}
}

// What a cut holds is bounded: in the end the sender has to wait.
func TestACutHoldsNoMoreThanItMust(t *testing.T) {
	s := newScene(t)
	client, _ := s.pair()
	s.forth.Set(nemesis.LinkState{Cut: true})
	_ = client.SetWriteDeadline(time.Now().Add(time.Second))
	n, err := client.Write(make([]byte, 256<<20))
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
}

// A new connection through a cut, in either direction, gets no answer until the cut is
// healed; one that was given up meanwhile never reaches the target.
func TestConnectingThroughACut(t *testing.T) {
	for name, line := range map[string]func(*scene) *proxy.Line{
		"forth": func(s *scene) *proxy.Line { return s.forth },
		"back":  func(s *scene) *proxy.Line { return s.back },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.dial()
			line(s).Set(nemesis.LinkState{Cut: true})
			given := s.dial()
			s.send(given, "?")
			_ = given.Close()
			client := s.dial()
			s.send(client, "!hello")
			s.silence(client)
			select {
			case <-s.accepted:
				t.Fatal("it has been connected")
			default:
			}
			line(s).Set(nemesis.LinkState{})
			server := s.accept()
			s.expect(server, "hello")
			select {
			case <-s.accepted:
				t.Error("what was given up arrived")
			case <-time.After(moment):
			}
		})
	}
}

func TestDelayKeepsTheOrder(t *testing.T) {
	s := newScene(t)
	client, server := s.pair()
	s.forth.Set(nemesis.LinkState{Delay: 50 * time.Millisecond, Jitter: 100 * time.Millisecond})
	began := time.Now()
	want := ""
	for i := range 200 {
		word := strconv.Itoa(i) + " "
		want += word
		s.send(client, word)
		time.Sleep(time.Millisecond) // so that they are read one by one
	}
	s.expect(server, want)
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	s.send(server, "back")
	s.expect(client, "back")
	began = time.Now()
	s.send(client, "late")
	s.expect(server, "late")
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

// What is delayed is let go when the delay ends.
func TestTheEndOfADelay(t *testing.T) {
	s := newScene(t)
	client, server := s.pair()
	s.forth.Set(nemesis.LinkState{Delay: time.Hour})
	s.send(client, "late")
	s.silence(server)
	s.forth.Set(nemesis.LinkState{})
	s.expect(server, "late")
}

// The bandwidth is one for all connections of a line.
func TestBandwidth(t *testing.T) {
	s := newScene(t)
	one, oneServer := s.pair()
	two, twoServer := s.pair()
	s.forth.Set(nemesis.LinkState{BytesPerSecond: 100_000})
	began := time.Now()
	text := string(bytes.Repeat([]byte("x"), 20_000))
	s.send(one, text)
	s.send(two, text)
	s.expect(oneServer, text)
	s.expect(twoServer, text)
	if took := time.Since(began); took < 350*time.Millisecond {
		t.Errorf("40 kB at 100 kB a second took %v", took)
	}
}

func TestResets(t *testing.T) {
	s := newScene(t)
	one, _ := s.pair()
	s.back.Set(nemesis.LinkState{ResetEvery: 20 * time.Millisecond})
	s.expectReset(one)
	s.expectReset(s.dial())
	s.back.Set(nemesis.LinkState{})
	client, server := s.pair()
	time.Sleep(moment) // several resets long
	s.send(client, "on")
	s.expect(server, "on")
}

// A half-open connection is silent both ways, and is reset when that ends.
func TestHalfOpen(t *testing.T) {
	s := newScene(t)
	client, server := s.pair()
	s.back.Set(nemesis.LinkState{HalfOpen: true})
	s.send(client, "into the void")
	s.send(server, "into the void")
	s.silence(server)
	s.silence(client)
	late := s.dial()
	s.send(late, "!")
	s.silence(late)
	s.back.Set(nemesis.LinkState{})
	s.expectReset(client)
	s.expectReset(server)
	s.expectReset(late)
	select {
	case <-s.accepted:
		t.Error("what was swallowed arrived")
	default:
	}
	client, server = s.pair()
	s.send(client, "on")
	s.expect(server, "on")
}

// Connections are refused at once when the target is known to be down, and when it
// turned out to refuse.
func TestItRefusesWhenTheTargetDoes(t *testing.T) {
	s := newScene(t)
	refused := func() bool {
		conn, err := net.Dial("tcp", s.proxy.Addr())
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	s.dial()
	s.leave()
	s.proxy.Down()
	if !refused() {
		t.Error("it accepts right after the target is down")
	}
	s.enter()
	client, _ := s.pair()
	s.leave()
	s.eventually("it has found out that the target refuses", refused)
	s.send(client, "on") // what is connected is not the listener's
	s.enter()
	s.pair()
}

// A refusal does not get through a cut.
func TestACutHidesThatTheTargetIsDown(t *testing.T) {
	s := newScene(t)
	s.dial()
	s.back.Set(nemesis.LinkState{Cut: true})
	s.leave()
	s.proxy.Down()
	client := s.dial()
	s.silence(client)
	s.back.Set(nemesis.LinkState{})
	s.expectReset(client)
	s.enter()
}

// When one end dies the other hears of it, unless the line is cut.
func TestAResetPassesThrough(t *testing.T) {
	s := newScene(t)
	client, server := s.pair()
	s.back.Set(nemesis.LinkState{Cut: true})
	_ = server.SetLinger(0)
	_ = server.Close()
	s.silence(client)
	s.back.Set(nemesis.LinkState{})
	s.expectReset(client)

	client, server = s.pair()
	_ = client.SetLinger(0)
	_ = client.Close()
	s.expectReset(server)
}

func TestOpenSaysThatAPortIsInUse(t *testing.T) {
	s := newScene(t)
	_, err := proxy.Open(proxy.Config{Listen: s.target, Target: s.target, Forth: s.forth, Back: s.back})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
}
