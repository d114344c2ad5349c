package faulty

import (
	"context"
	"sync"
	"time"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/lease"
)

// earlyAck foretells what an acquire will be answered, and answers it at once. What
// comes for the same key meanwhile waits, so that as long as nothing fails nobody sees
// a difference: only a node that is killed or cut off at the wrong moment shows it.
type earlyAck struct {
	honest
	mu      sync.Mutex
	pending map[string]chan struct{} // by key; closed when the grant is decided
}

func newEarlyAck(h honest) (api.Consensus, api.State) {
	return &earlyAck{honest: h, pending: map[string]chan struct{}{}}, h.state
}

// decisionTimeout is how long a foretold grant may take.
const decisionTimeout = 30 * time.Second

func (e *earlyAck) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	if len(mutations) == 1 && mutations[0].Op == lease.OpAcquire {
		if answer, ok := e.foretell(mutations[0]); ok {
			return []lease.Outcome{{Answer: answer}}, nil
		}
	}
	for _, m := range mutations {
		if !e.await(ctx, m.Key) {
			break // what ctx means is the honest part's to say
		}
	}
	return e.Consensus.Propose(ctx, mutations)
}

// foretell returns the answer to an acquire of a free key that nobody else is about to
// be granted, and has it proposed.
func (e *earlyAck) foretell(m lease.Mutation) (lease.Answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, leads := e.Reading()
	view, err := e.state.Get(m.Key)
	if e.pending[m.Key] != nil || !leads || err != nil || !view.Record.OverAt(now) {
		return lease.Answer{}, false
	}
	decided := make(chan struct{})
	e.pending[m.Key] = decided
	go e.propose(m, decided) // ends with the node, and by its own timeout
	r := view.Record
	r.Epoch++
	r.Owner, r.LeaseUntil, r.Attributes = m.Owner, now.Add(m.TTL), m.Attributes
	return lease.Answer{Record: r, Now: now, Remaining: m.TTL, Changed: true}, true
}

func (e *earlyAck) propose(m lease.Mutation, decided chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), decisionTimeout)
	defer cancel()
	_, _ = e.Consensus.Propose(ctx, []lease.Mutation{m}) // whatever comes of it, the answer has been given
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, m.Key)
	close(decided)
}

// await waits until no grant of key is pending.
func (e *earlyAck) await(ctx context.Context, key string) bool {
	e.mu.Lock()
	decided := e.pending[key]
	e.mu.Unlock()
	if decided == nil {
		return true
	}
	select {
	case <-decided:
		return true
	case <-ctx.Done():
		return false
	}
}
