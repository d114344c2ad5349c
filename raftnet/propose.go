package raftnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// inFlightEntries is how many entries may be on their way at once. What comes meanwhile
// is packed into the next: few fuller entries beat many, since an entry costs each node
// as much as tens of mutations. So a second one is sent only if it has as much as the
// first; else it would take the company that it has a moment later.
const inFlightEntries = 2

// Propose has mutations, which the caller has validated, put into the log and
// returns the outcome of each, in order; they may fall into different entries. The
// error is for the call as a whole, and then none was done: this node does not lead
// ([lease.ErrUnavailable]) or has too much waiting ([*lease.ExhaustedError]).
//
// When ctx ends, what was not yet packed is certainly not done, and all else that
// has no outcome is [lease.ErrOutcomeUnknown].
func (n *Node) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	bodies := make([][]byte, len(mutations))
	for i, m := range mutations {
		bodies[i] = fsm.EncodeMutation(m)
	}
	c := newCall(ctx, bodies)
	for i := range mutations {
		c.items[i].mutation = &mutations[i]
	}
	return n.propose(ctx, c)
}

// Tick has the leader's clock put into the log.
func (n *Node) Tick(ctx context.Context) error {
	outcomes, err := n.propose(ctx, newCall(ctx, [][]byte{nil}))
	if err != nil {
		return err
	}
	return outcomes[0].Err
}

func (n *Node) propose(ctx context.Context, c *call) ([]lease.Outcome, error) {
	if len(c.items) == 0 {
		return nil, nil
	}
	if n.raft.State() != raft.Leader {
		return nil, n.notLeader()
	}
	if err := n.lines.claim(c); err != nil {
		return nil, err
	}
	outcomes := make([]lease.Outcome, len(c.items))
	var cause error
	select {
	case <-c.done:
		for i := range c.items {
			outcomes[i] = c.items[i].outcome
		}
		return outcomes, nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-n.ctx.Done():
		cause = errors.New("this node is stopping")
	}
	for i := range c.items {
		outcomes[i] = c.items[i].abandon(cause)
	}
	return outcomes, nil
}

func (n *Node) notLeader() error {
	return fmt.Errorf("node %q does not lead: %w", n.cfg.ID, lease.ErrUnavailable)
}

// packLoop packs what waits into entries and proposes them.
func (n *Node) packLoop() {
	var patient <-chan time.Time
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.queue.added:
		case <-n.settled:
		case <-n.turned:
		case <-patient:
		}
		for {
			left, waits := n.queue.patience()
			if len(n.spill) == 0 && (!waits || left > 0) {
				patient = nil
				if waits {
					patient = time.After(left)
				}
				break
			}
			if n.raft.State() != raft.Leader {
				n.queue.failAll(n.notLeader())
				finishAll(n.spill, n.notLeader())
				n.spill = nil
				break
			}
			if n.current() == nil { // leadLoop opens the term and signals turned
				signal(n.reopen)
				break
			}
			if !n.mayFollow() {
				break // until more is added or something is settled
			}
			n.proposeEntry()
		}
	}
}

// mayFollow tells whether what waits may go while what is on its way is.
func (n *Node) mayFollow() bool {
	switch n.inFlight.Load() {
	case 0:
		return true
	case inFlightEntries:
		return false
	default:
		return len(n.spill) > 0 || n.queue.length() >= n.latest
	}
}

// proposeEntry packs one entry and hands it to raft.
func (n *Node) proposeEntry() {
	items := n.nextItems()
	r := n.current()
	if len(items) == 0 || r == nil {
		finishAll(items, n.notLeader())
		return
	}
	bodies := make([][]byte, 0, len(items))
	for _, it := range items {
		if it.body != nil {
			bodies = append(bodies, it.body)
		}
	}
	// The reading comes after the last mutation has joined: taken earlier, it could be
	// of a time when a mutation's caller had not even sent it.
	stamp := fsm.Stamp{Reading: r.reading(n.cfg.Clock.Monotonic()), Term: r.term, Wall: n.cfg.Clock.Wall()}
	number := n.entries.Add(1)
	began := n.cfg.Clock.Monotonic()
	future := n.raft.Apply(fsm.EncodeBatch(stamp, bodies), enqueueTimeout)
	n.latest = len(items)
	n.inFlight.Add(1)
	n.joined.Go(func() {
		defer func() {
			n.inFlight.Add(-1)
			signal(n.settled)
		}()
		n.settle(number, items, future)
		n.cfg.Metrics.entry(len(bodies), n.cfg.Clock.Monotonic()-began)
	})
}

// nextItems returns what goes into the next entry. With those who wait put in, it may
// be more than one can take: what is too much waits in spill for the next.
func (n *Node) nextItems() []*item {
	items := n.spill
	if len(items) == 0 {
		items = n.queue.take(fsm.MaxEntryBytes)
		if n.lines.concern(items) {
			items = n.lines.plan(items, n.cfg.FSM.Get)
		}
	}
	n.spill = nil
	size := 0
	for i, it := range items {
		if size += len(it.body); size > fsm.MaxEntryBytes && i > 0 {
			n.spill = items[i:]
			return items[:i:i]
		}
	}
	return items
}

func finishAll(items []*item, err error) {
	for _, it := range items {
		it.finish(lease.Outcome{Err: err})
	}
}

// settle waits for the answer to the entry of that number and gives each of its items
// its outcome.
func (n *Node) settle(number uint64, items []*item, future raft.ApplyFuture) {
	if err := n.await(n.ctx, future); err != nil {
		finishAll(items, sortError(err, future))
		return
	}
	switch answer := future.Response().(type) {
	case []lease.Outcome:
		next := 0
		for _, it := range items {
			if it.body == nil {
				it.finish(lease.Outcome{})
				continue
			}
			if n.lines.count.Load() > 0 {
				n.lines.learn(number, it.mutation, answer[next])
			}
			it.finish(answer[next])
			next++
		}
	case *fsm.TermError: // stamped in another term than the log's: nothing was done
		signal(n.reopen)
		finishAll(items, fmt.Errorf("%w: %w", lease.ErrUnavailable, answer))
	default:
		finishAll(items, fmt.Errorf("%w: the state machine answered %v", lease.ErrOutcomeUnknown, answer))
	}
}

// sortError tells what certainly was not done from what may have been. Only three of
// raft's errors are certain, and only without an index: then the entry never came
// into the log. A lost leadership, a store's error or no answer at all may all have
// left an entry that is committed later.
func sortError(err error, future raft.ApplyFuture) error {
	certain := errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) || errors.Is(err, raft.ErrEnqueueTimeout)
	if certain && future.Index() == 0 {
		return fmt.Errorf("%w: %w", lease.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, err)
}
