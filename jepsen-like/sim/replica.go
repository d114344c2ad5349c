package sim

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

// replica is one holder: a machine with a clock of its own, that can be stopped. While
// it is, whatever the workload on it does next waits.
type replica struct {
	cluster *Cluster
	number  int
	rate    float64 // by how much its clock gains
	clock   *clock

	mu    sync.Mutex
	still chan struct{} // closed when it goes on; nil while it does
}

func newReplica(c *Cluster, number int, rate float64) *replica {
	return &replica{cluster: c, number: number, rate: rate, clock: newClock(rate)}
}

func (r *replica) stand(still bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case still && r.still == nil:
		r.still = make(chan struct{})
	case !still && r.still != nil:
		close(r.still)
		r.still = nil
	}
}

func (r *replica) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.still != nil
}

// pass returns when the replica is not stopped.
func (r *replica) pass() {
	r.mu.Lock()
	still := r.still
	r.mu.Unlock()
	if still != nil {
		<-still
	}
}

// now is the replica's clock, for who runs on it.
func (r *replica) now() time.Duration {
	r.pass()
	return r.clock.Monotonic()
}

// real returns when, in real time, the replica's clock has a reading.
func (r *replica) real(reading time.Duration) float64 { return float64(reading) / (1 + r.rate) }

// hold is the life of the replica until ctx ends.
func (r *replica) hold(ctx context.Context, o workload.HoldOptions) error {
	client, err := holder.Dial(r.cluster.Endpoints(), holder.DialWith(r.cluster.dialFrom(clientHost(1+r.number))))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	o.Store, o.Clock, o.Now = client, r.clock, r.now
	o.Resource, o.Sink = resource{r, o.Resource}, witness{r, o.Sink}
	return workload.Hold(ctx, o)
}

// resource is what the replica writes to, whenever it is not stopped.
type resource struct {
	replica *replica
	workload.Resource
}

func (s resource) Write(attempt history.Write) (history.Write, error) {
	s.replica.pass()
	return s.Resource.Write(attempt)
}

// witness takes down in real time what the replica says on its own clock, to the side
// of too little where that rounds.
type witness struct {
	replica *replica
	sink    workload.HoldSink
}

func (w witness) Held(g workload.Grant, span workload.Span) {
	from, until := math.Ceil(w.replica.real(span.From)), math.Floor(w.replica.real(span.Until))
	if from < until {
		w.sink.Held(g, workload.Span{From: time.Duration(from), Until: time.Duration(until)})
	}
}

func (w witness) Released(g workload.Grant, at time.Duration) {
	w.sink.Released(g, time.Duration(w.replica.real(at)))
}

func (w witness) Fenced(g workload.Grant, at time.Duration) {
	w.sink.Fenced(g, time.Duration(w.replica.real(at)))
}

func (w witness) Wrote(attempt history.Write) { w.sink.Wrote(attempt) }
