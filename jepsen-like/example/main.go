// Command example is a program that the chaos harness can judge: it owns a key by the
// holder library, writes to a file that is fenced, and tells on its standard output
// what it believes and what it wrote. docs/chaos.md describes the lines.
//
//	go build -o /tmp/example ./jepsen-like/example
//	go run ./jepsen-like --workload-command /tmp/example
//
// With --believes-too-long it goes on believing after its lease is over, as a program
// does that looks at its lease once and then works for as long as it takes: the harness
// has to notice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

// ttl is short, for a program that is tried out; see [holder.Config].
const ttl = time.Second

func main() {
	tooLong := flag.Duration("believes-too-long", 0, "how long to go on believing after the lease is over")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *tooLong)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run owns the key of LEASENODE_KEY, again and again, until ctx ends.
func run(ctx context.Context, tooLong time.Duration) error {
	client, err := holder.Dial(strings.Split(os.Getenv("LEASENODE_ENDPOINTS"), ","))
	if err != nil {
		return err
	}
	defer client.Close()
	h, err := holder.New(client, holder.Config{Owner: os.Getenv("LEASENODE_HOLDER"), TTL: ttl})
	if err != nil {
		return err
	}
	defer h.Close()
	w := worker{
		lines:    workload.NewWriter(os.Stdout),
		resource: workload.NewFileResource(os.Getenv("LEASENODE_RESOURCE"), workload.Monotonic),
		tooLong:  tooLong,
	}
	for ctx.Err() == nil {
		l, err := h.Await(ctx, os.Getenv("LEASENODE_KEY"))
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.work(ctx, l); err != nil {
			return err
		}
		w.giveUp(l)
	}
	return w.lines.Err()
}

// worker does what the key is owned for.
type worker struct {
	lines    *workload.Writer
	resource workload.Resource
	tooLong  time.Duration
}

// work works for two seconds, or until the lease is not held any more.
func (w worker) work(ctx context.Context, l *holder.Lease) error {
	grant := workload.Grant{Key: l.Key(), Epoch: l.Epoch()}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		before := workload.Monotonic()
		remaining := l.Remaining()
		if remaining == 0 {
			w.lines.Fenced(grant, before+w.tooLong)
			return nil
		}
		// Certain from now on, until what remained when it was asked for.
		w.lines.Held(grant, workload.Span{From: workload.Monotonic(), Until: before + remaining + w.tooLong})
		written, err := w.resource.Write(history.Write{Holder: l.Owner(), Key: grant.Key, Token: grant.Epoch})
		switch {
		case err == nil:
			w.lines.Wrote(written)
		case !errors.Is(err, workload.ErrBusy):
			return fmt.Errorf("write to %s: %w", filepath.Base(os.Getenv("LEASENODE_RESOURCE")), err)
		}
		time.Sleep(30 * time.Millisecond)
	}
	return nil
}

// giveUp says that the work is over before it gives the key back.
func (w worker) giveUp(l *holder.Lease) {
	w.lines.Released(workload.Grant{Key: l.Key(), Epoch: l.Epoch()}, workload.Monotonic()+w.tooLong)
	release, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	_ = l.Release(release) // else it ends by itself
}
