package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// The test program, started with these in its environment, is a replica: it does what
// it reads line by line, and answers each with a line.
const (
	endpointsVariable = "LEASENODE_E2E_ENDPOINTS"
	ownerVariable     = "LEASENODE_E2E_OWNER"
	ttlVariable       = "LEASENODE_E2E_TTL"
)

// replica is the life of such a process.
func replica(endpoints string) {
	client, err := holder.Dial(strings.Split(endpoints, ","))
	if err != nil {
		panic(err)
	}
	ttl, err := time.ParseDuration(os.Getenv(ttlVariable))
	if err != nil {
		panic(err)
	}
	h, err := holder.New(client, holder.Config{Owner: os.Getenv(ownerVariable), TTL: ttl})
	if err != nil {
		panic(err)
	}
	var l *holder.Lease
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		word, key, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch word {
		case "acquire":
			var got *holder.Lease
			if got, err = h.Acquire(ctx, key); err == nil {
				l = got
			}
		case "check":
			err = l.Check()
		case "renew":
			err = l.Renew(ctx)
		}
		cancel()
		fmt.Println(describe(l, err))
	}
}

// describe tells in one line what came of a command.
func describe(l *holder.Lease, err error) string {
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		return fmt.Sprintf("LEASE_HELD by %s at %d", held.Record.Owner, held.Record.Epoch)
	}
	if fenced, ok := errors.AsType[*lease.FencedError](err); ok {
		return fmt.Sprintf("FENCED %s, %s", fenced.Reason, fenced.Cause)
	}
	if err != nil {
		return fmt.Sprintf("%s %q", lease.CodeOf(err), err)
	}
	return fmt.Sprintf("held at %d", l.Epoch())
}

// process is a running replica.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    *os.File
	lines chan string
}

// startReplica runs a replica, killed at the end of the test.
func startReplica(t *testing.T, c *cluster, owner string, ttl time.Duration) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), endpointsVariable+"="+strings.Join(c.endpoints, ","), ownerVariable+"="+owner, ttlVariable+"="+ttl.String())
	p.cmd.Stderr = os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin, p.in = read, write
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	_ = read.Close()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.in.Close()
		<-ended
	})
	p.wantLine("ready")
	return p
}

// say tells the replica what to do next.
func (p *process) say(command string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatal(err)
	}
}

// line returns its next answer.
func (p *process) line() string {
	p.t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(patience):
		p.t.Fatal("the replica does not answer")
		return ""
	}
}

func (p *process) wantLine(wanted string) {
	p.t.Helper()
	if got := p.line(); !strings.HasPrefix(got, wanted) {
		p.t.Fatalf("the replica said %q, want %q", got, wanted)
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
