package workload

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// drawn is what chance says about one operation. It is drawn as a whole, whatever the
// operation will need of it, so that an answer does not change the operations after.
type drawn struct {
	pause     time.Duration
	kind      history.Kind
	key       int
	ttl       time.Duration
	endpoint  int
	owner     int     // of whom, where it is not the client's own
	twist     float64 // which lie is told, if any
	retry     float64 // whether what was asked before is asked again
	requestID string
}

// weights are how often kinds are asked for, of 100.
var weights = []struct {
	kind history.Kind
	of   int
}{
	{history.Acquire, 32},
	{history.Renew, 20},
	{history.Release, 10},
	{history.Forget, 5},
	{history.Get, 23},
	{history.GetStale, 10},
}

func (c *client) draw() drawn {
	d := drawn{
		pause:    time.Duration(c.random.Int64N(int64(2 * c.Pause))),
		kind:     kindAt(c.random.IntN(100)),
		key:      c.random.IntN(max(1, c.Keys)),
		ttl:      300*time.Millisecond + time.Duration(c.random.IntN(1200))*time.Millisecond,
		endpoint: c.random.IntN(len(c.Endpoints)),
		owner:    c.random.IntN(c.Clients),
		twist:    c.random.Float64(),
		retry:    c.random.Float64(),
	}
	if long := time.Duration(c.random.IntN(3500)) * time.Millisecond; c.random.IntN(6) == 0 {
		d.ttl += long
	}
	d.requestID = fmt.Sprintf("%s-%016x", c.name, c.random.Uint64())
	return d
}

func kindAt(chance int) history.Kind {
	for _, w := range weights {
		if chance -= w.of; chance < 0 {
			return w.kind
		}
	}
	return history.Get
}

// next returns the operation that was drawn, with what the client knows put in.
func (c *client) next(d drawn) (history.Op, Endpoint) {
	to := c.Endpoints[d.endpoint]
	op := history.Op{Client: c.name, Kind: d.kind, Key: c.keyName(d.key)}
	known := c.known[op.Key]
	switch d.kind {
	case history.Get, history.GetStale:
		return op, to
	case history.Acquire:
		if again := known.asked; d.retry < chanceToRetry(again) {
			op.Owner, op.TTL, op.RequestID = again.Owner, again.TTL, again.RequestID
			return op, to
		}
		op.RequestID = d.requestID
	default:
		op.Epoch = max(1, known.epoch)
	}
	op.Owner = c.name
	if d.kind == history.Acquire || d.kind == history.Renew {
		op.TTL = d.ttl
	}
	c.lie(&op, d)
	return op, to
}

// chanceToRetry is how often an acquire is asked again with its request id: most often
// if nobody knows what became of it, and now and then though it was answered.
func chanceToRetry(asked history.Op) float64 {
	switch asked.Outcome {
	case history.Unknown:
		return 0.75
	case history.OK:
		return 0.15
	default: // there is none
		return 0
	}
}

// lie has an operation speak, now and then, for another owner or another epoch.
func (c *client) lie(op *history.Op, d drawn) {
	const each = 0.06
	switch {
	case d.twist < each:
		op.Owner = clientName(d.owner)
	case d.twist < 2*each && op.Epoch > 1:
		op.Epoch--
	case d.twist < 3*each && op.Epoch > 0:
		op.Epoch++
	}
}

func (c *client) keyName(n int) string {
	if c.Rotate <= 0 {
		return fmt.Sprintf("%sk%d", c.Prefix, n+1)
	}
	return fmt.Sprintf("%sk%d/%d", c.Prefix, n+1, c.now()/c.Rotate)
}
