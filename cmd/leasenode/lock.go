package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

func (a *app) lockCommand() *cobra.Command {
	r := &lockRun{app: a}
	cmd := &cobra.Command{
		Use:   "lock KEY [flags] -- COMMAND ARG...",
		Short: "Run a command only while a key is yours",
		Long: `Wait in line for the key, first come, first served, acquire it, run COMMAND while the lease is held, and give
the key back when COMMAND has ended. LEASENODE_KEY and LEASENODE_EPOCH are in its
environment: have whatever it writes to refuse a lower epoch.

The lease is renewed all the while. If that fails until a fifth of --ttl before the
lease's end, or the lease is lost, COMMAND is fenced: its process group gets SIGTERM,
and, if it has not ended a tenth of --ttl before the lease's end, SIGKILL; the exit code
is then 4. A lease that is lost gets SIGKILL at once. SIGINT, SIGTERM, SIGHUP, SIGQUIT,
SIGUSR1 and SIGUSR2 are passed on to the group. What COMMAND left behind has a tenth of
--ttl to end by itself, and is then killed before the key is given back.

A second process, the guard, starts COMMAND and ends it in time, also if this one is
stopped (SIGSTOP) or dies (kill -9).

  Linux        covered are all processes that COMMAND started, those too that left its
               group, as daemons do. If this process and its guard are killed at one
               stroke, COMMAND is killed, but not its children.
  other Unix   covered is the process group. If this process and its guard are killed
               at one stroke, COMMAND goes on.
  Windows      not available.

Not covered is what COMMAND has others start (containers, services, remote shells), what
it runs as another user (sudo), and what happens between the end of the lease and the
waking of a machine that was suspended or paused as a whole. There only the epoch
protects.

Exit codes: that of COMMAND if it ended by itself, 128+n for signal n; 4 if it was
fenced; 3 if the key was held until --wait was over; 126 if COMMAND cannot be executed,
127 if there is none; 2 usage, 5 unavailable. What happens is told on standard error.`,
		Example: `  leasenode lock backup -- pg_dump -f /backup/db.sql db
  leasenode lock deploy --wait 0s -- ./deploy.sh    exit code 3 if somebody deploys now
  leasenode lock leader/web --ttl 30s -- sh -c 'serve --fencing-token "$LEASENODE_EPOCH"'`,
	}
	flags := cmd.Flags()
	flags.StringVar(&r.owner, "owner", "", "who asks, as others will see it; made of the host's name, the process id and chance if not given")
	flags.DurationVar(&r.ttl, "ttl", defaultTTL, "how long the lease lasts unless it is renewed: 100ms to 24h")
	flags.DurationVar(&r.wait, "wait", 0, "how long to wait for the key, and --timeout at least for the cluster to answer; for ever if not given")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.running = true
		r.forEver = !cmd.Flags().Changed("wait")
		var err error
		if r.key, r.command, err = atDash(cmd.ArgsLenAtDash(), args); err != nil {
			return err
		}
		return r.run(cmd.Context())
	}
	return cmd
}

// atDash divides the arguments of lock at the "--". It stood before the dash-th of
// them, or nowhere if that is negative; in front of a key that begins with a dash there
// is another one.
func atDash(dash int, args []string) (key string, command []string, err error) {
	if dash == 0 && len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
		dash = 1
	}
	if dash != 1 || len(args) < 2 {
		return "", nil, usagef("lock takes one KEY, and after -- a COMMAND with its arguments")
	}
	return args[0], args[1:], nil
}

// lockRun is one run of the lock command.
type lockRun struct {
	app     *app
	key     string
	command []string
	owner   string
	ttl     time.Duration
	wait    time.Duration
	forEver bool // without a --wait

	mu sync.Mutex // makes lines on standard error whole
}

// margin is how long before the lease's end COMMAND is told to stop, and grace how much
// of that it has for it. The rest of the margin is for the killing, and for what the
// rates of two clocks differ.
func (r *lockRun) margin() time.Duration { return r.ttl / 5 }
func (r *lockRun) grace() time.Duration  { return r.margin() / 2 }

// say tells the user what happens, apart from what COMMAND may print.
func (r *lockRun) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.app.stderr, "leasenode: "+format+"\n", args...)
}

func (r *lockRun) run(ctx context.Context) error {
	if r.owner == "" {
		r.owner = anyOwner()
	}
	if r.wait < 0 {
		return usagef("--wait is %v: it cannot be negative", r.wait)
	}
	if err := (lease.AcquireRequest{Key: r.key, Owner: r.owner, TTL: r.ttl}).Mutation().Validate(); err != nil {
		return err
	}
	if err := executable(r.command[0]); err != nil {
		return err
	}
	// The signals that end ctx are not for lock to obey but to pass on.
	ctx = context.WithoutCancel(ctx)
	signals, ignore := catchSignals()
	defer ignore()
	return r.app.withCluster(func(c cluster) error {
		h, err := holder.New(c, holder.Config{Owner: r.owner, TTL: r.ttl, Margin: r.margin()})
		if err != nil {
			return err
		}
		defer h.Close()
		l, err := r.await(ctx, h, signals)
		if err != nil {
			return err
		}
		r.say("acquired %q at epoch %d", r.key, l.Epoch())
		err = r.guarded(l, signals)
		r.giveBack(ctx, l)
		return err
	})
}

// anyOwner is an owner that nobody else has.
func anyOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // it is for people only
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:8])
}

// await acquires the key. It gives up when the wait is over or a signal comes.
func (r *lockRun) await(ctx context.Context, h *holder.Holder, signals chan os.Signal) (*holder.Lease, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	var caught os.Signal
	var joined sync.WaitGroup
	joined.Go(func() {
		select {
		case caught = <-signals:
			cancel()
		case <-waiting.Done():
		}
	})
	l, err := r.queue(waiting, h)
	cancel()
	joined.Wait()
	if caught == nil {
		return l, err
	}
	if l != nil {
		r.giveBack(ctx, l)
	}
	return nil, &exitError{code: signalCode(caught), err: fmt.Errorf("%v while waiting for %q", caught, r.key)}
}

// queue waits in line until the key is granted, the wait is over, ctx ends, or waiting
// on is of no use. However short the wait, the cluster has the --timeout to answer.
func (r *lockRun) queue(ctx context.Context, h *holder.Holder) (*holder.Lease, error) {
	began := time.Now()
	slow := time.AfterFunc(r.app.timeout, func() {
		r.say("waiting for %q: the cluster has not answered for %s (asked %s)", r.key, length(r.app.timeout), strings.Join(r.app.endpoints, ", "))
	})
	defer slow.Stop()
	ctx = lease.OnWaiting(ctx, func(held lease.HeldError) {
		slow.Stop()
		r.say("waiting for %q, %s", r.key, inTheWay(held))
	})
	var err error
	if r.forEver || r.wait > 0 {
		inLine, cancel := ctx, context.CancelFunc(func() {})
		if !r.forEver {
			inLine, cancel = context.WithDeadline(ctx, began.Add(r.wait))
		}
		defer cancel()
		var l *holder.Lease
		if l, err = h.Await(inLine, r.key); err == nil {
			return l, nil
		}
	}
	least := began.Add(r.app.timeout)
	if code := lease.CodeOf(err); ctx.Err() != nil || err != nil && (code != lease.CodeUnavailable && code != lease.CodeOutcomeUnknown || !time.Now().Before(least)) {
		return nil, settled(err)
	}
	ctx, cancel := context.WithDeadline(ctx, least)
	defer cancel()
	l, err := h.Acquire(ctx, r.key)
	return l, settled(err)
}

// giveBack releases the lease, nothing being left that could need it. That is a favour
// to others: a failure costs them the rest of the lease.
func (r *lockRun) giveBack(ctx context.Context, l *holder.Lease) {
	patience, left := r.app.timeout, r.ttl
	if fence, ok := errors.AsType[*lease.FencedError](l.Check()); ok {
		if fence.Reason == lease.ReasonLost {
			return
		}
		patience, left = min(patience, r.grace()), r.margin()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		r.say("could not release %q: %v; its lease ends by itself after %s at most in which the cluster serves, and does not end while it does not", r.key, err, length(left))
		return
	}
	r.say("released %q", r.key)
}

// exitError ends the program with a code of its own; silently if err is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }
