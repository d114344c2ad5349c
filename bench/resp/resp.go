// Package resp speaks as much of Redis's protocol as setting a key takes.
package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Nil is the answer of a SET NX to a key that is there already.
const Nil = "(nil)"

// Conn is one connection. It is not safe for concurrent use.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects to host:port.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	return &Conn{conn: conn, in: bufio.NewReader(conn)}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a command and returns the answer, which has to be a simple string or nil. It
// obeys the deadline of ctx. After an error that is not an answer, the connection is of
// no more use.
func (c *Conn) Do(ctx context.Context, args ...string) (string, error) {
	deadline, _ := ctx.Deadline() // none is the zero time, which stands for none here too
	if err := c.conn.SetDeadline(deadline); err != nil {
		return "", fmt.Errorf("redis %s: %w", args[0], err)
	}
	if _, err := c.conn.Write(encode(args)); err != nil {
		return "", fmt.Errorf("redis %s: %w", args[0], err)
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("redis %s: %w", args[0], err)
	}
	answer, err := decode(line)
	if err != nil {
		return "", fmt.Errorf("redis %s: %w", args[0], err)
	}
	return answer, nil
}

// Set sets the key for ttl unless it is there, and reports whether it was not.
func (c *Conn) Set(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	answer, err := c.Do(ctx, "SET", key, value, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	return answer == "OK", err
}

func encode(args []string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out
}

func decode(line string) (string, error) {
	line = strings.TrimSuffix(line, "\r\n")
	switch {
	case line == "$-1" || line == "_":
		return Nil, nil
	case strings.HasPrefix(line, "+"):
		return line[1:], nil
	case strings.HasPrefix(line, "-"):
		return "", errors.New(line[1:])
	default:
		return "", fmt.Errorf("the answer %q is none that was expected", line)
	}
}
