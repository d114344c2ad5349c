package resp_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/resp"
)

func TestSet(t *testing.T) {
	const sent = "*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nyou\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1500\r\n"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	answers := []string{"+OK\r\n", "$-1\r\n", "-ERR no\r\n", ":1\r\n"}
	served := make(chan error, 1)
	go func() { served <- serve(listener, len(sent), answers, sent) }()
	conn, err := resp.Dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for i, want := range []struct {
		set   bool
		fails string // how the error ends, if there is one
	}{{set: true}, {}, {fails: ": ERR no"}, {fails: "none that was expected"}} {
		set, err := conn.Set(t.Context(), "k", "you", 1500*time.Millisecond)
		if set != want.set || (err != nil) != (want.fails != "") {
			t.Errorf("answered %q: %v, %v", answers[i], set, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), want.fails) {
			t.Errorf("answered %q: %v", answers[i], err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// serve answers one connection, and fails if it is not sent the same each time.
func serve(listener net.Listener, size int, answers []string, want string) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, answer := range answers {
		got := make([]byte, size)
		if _, err := io.ReadFull(conn, got); err != nil {
			return err
		}
		if string(got) != want {
			return &unexpected{got: string(got)}
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return err
		}
	}
	return nil
}

type unexpected struct{ got string }

func (u *unexpected) Error() string { return "sent: " + u.got }
