package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// ClientOptions are what [Clients] work with.
type ClientOptions struct {
	Seed    uint64
	Clients int
	// Keys is how many keys there are at a time; their names begin with Prefix.
	Keys   int
	Prefix string
	// Endpoints are whom clients ask; each draws anew for each operation.
	Endpoints []Endpoint
	// Now is the harness's clock.
	Now func() time.Duration
	// Timeout bounds an operation; 0 stands for a second.
	Timeout time.Duration
	// Pause is the mean of the pauses between the operations of a client; 0 stands for
	// 50 ms.
	Pause time.Duration
	// Rotate is how often the clients turn to fresh keys, so that no key has so many
	// operations that nobody can check them any more; 0 for never.
	Rotate time.Duration
	Sink   OpSink
}

const (
	defaultTimeout = time.Second
	defaultPause   = 50 * time.Millisecond
)

// Clients runs clients until ctx ends and all operations that are out have ended.
func Clients(ctx context.Context, o ClientOptions) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Pause <= 0 {
		o.Pause = defaultPause
	}
	var all sync.WaitGroup
	for n := range o.Clients {
		c := &client{
			ClientOptions: o, number: n, name: clientName(n), known: map[string]knowledge{},
			random: rand.New(rand.NewPCG(o.Seed, uint64(n)+0x636c69656e740000)),
			asker:  asker{now: o.Now, timeout: o.Timeout, sink: o.Sink},
		}
		all.Go(func() { c.loop(ctx) })
	}
	all.Wait()
}

func clientName(n int) string { return fmt.Sprintf("c%d", n+1) }

// client is one client.
type client struct {
	ClientOptions
	asker
	number int
	name   string
	random *rand.Rand
	known  map[string]knowledge // by key
}

// knowledge is what a client remembers of a key.
type knowledge struct {
	epoch uint64     // of the latest grant it had itself, or has seen
	asked history.Op // its latest acquire that was done, or may have been; zero if there is none
}

func (c *client) loop(ctx context.Context) {
	for {
		d := c.draw()
		if !sleep(ctx, d.pause) {
			return
		}
		op, to := c.next(d)
		c.learn(c.ask(ctx, to, op))
	}
}

// learn remembers what an operation has told.
func (c *client) learn(op history.Op) {
	known := c.known[op.Key]
	if op.Record.Epoch > 0 {
		known.epoch = op.Record.Epoch
	}
	if op.Kind == history.Acquire && (op.Outcome == history.Unknown || op.Outcome == history.OK) {
		known.asked = op
	}
	c.known[op.Key] = known
}

// sleep returns true after d, or false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
