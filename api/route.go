package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// mode is what a server does with a request that only the leader can answer, on a
// node that does not lead.
type mode uint8

const (
	// passesOn sends it to the leader: for requests of clients.
	passesOn mode = iota
	// answersOnly refuses it: for requests that were passed on already.
	answersOnly
)

// leaseServer is LeaseService.
type leaseServer struct {
	leasepb.UnimplementedLeaseServiceServer
	node Node
	mode mode
	// watches counts watches; nil where there are none.
	watches *watchMetrics
	// rounds has the leader asked how far it is, for watches.
	rounds rounds
	// passed are the calls that were passed on to the leader.
	passed *passedOn
}

// call is a request on its way to whoever can answer it.
type call[Request, Response any] struct {
	// subject says in errors what was asked for.
	subject fmt.Stringer
	effect  wire.Effect
	// consistency is that of a read. Only a stale one need not go to the leader.
	consistency lease.Consistency
	request     Request
	// here answers it on this node.
	here func(ctx context.Context) (Response, error)
	// there sends it to another node.
	there func(leasepb.LeaseServiceClient, context.Context, Request, ...grpc.CallOption) (Response, error)
}

func subjectOf(m lease.Mutation) wire.Subject {
	return wire.Subject{What: m.Op.String(), Key: m.Key}
}

// answer answers c here if this node can, and else has the leader do it. Whether
// this node still leads when here comes to it, here finds out: it is refused then,
// certainly not done.
func answer[Request, Response any](ctx context.Context, s *leaseServer, c call[Request, Response]) (Response, error) {
	var none Response
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: given up before it was begun: %w (%w)", c.subject, lease.ErrUnavailable, err)
	}
	leader := s.node.Consensus.Leader()
	// A node that has been elected and has not opened its term yet is about to: what it
	// holds meanwhile is done sooner than what it would refuse.
	if c.consistency == lease.Stale || s.node.Consensus.Leads() || leader.ID == s.node.ID {
		response, err := c.here(ctx)
		if err != nil {
			return none, about(c.subject, c.effect, err)
		}
		return response, nil
	}
	switch {
	case leader.ID == "":
		return none, fmt.Errorf("%s: node %q knows no leader now: %w", c.subject, s.node.ID, lease.ErrUnavailable)
	case s.mode == answersOnly:
		return none, fmt.Errorf("%s: node %q does not lead: %w", c.subject, s.node.ID, lease.ErrUnavailable)
	}
	return passOn(ctx, s, c, leader.ID)
}

// passOn sends c to the leader, once, and returns its answer as it is.
func passOn[Request, Response any](ctx context.Context, s *leaseServer, c call[Request, Response], leaderID string) (Response, error) {
	var none Response
	conn, err := s.node.Peers.Conn(leaderID)
	if err != nil {
		return none, fmt.Errorf("%s: node %q can not reach the leader %q: %w (%w)", c.subject, s.node.ID, leaderID, lease.ErrUnavailable, err)
	}
	ctx, cancel := withWayBack(ctx)
	defer cancel()
	ctx, release := s.passed.whileLeading(ctx, leaderID)
	defer release()
	response, err := c.there(leasepb.NewLeaseServiceClient(conn), ctx, c.request)
	var changed *leaderChangedError
	switch {
	case err == nil:
		return response, nil
	case wire.Answered(err):
		return none, err
	case errors.As(context.Cause(ctx), &changed):
		return none, fmt.Errorf("%s: node %q passed it on to the leader %q, but %w: %w", c.subject, s.node.ID, leaderID, changed, wire.FromCall(err, c.effect))
	default:
		return none, fmt.Errorf("%s: node %q passed it on to the leader %q: %w", c.subject, s.node.ID, leaderID, wire.FromCall(err, c.effect))
	}
}

// withWayBack ends ctx a little early, so that its client hears what became of the
// call while it still listens.
func withWayBack(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	const most = 50 * time.Millisecond
	return context.WithDeadline(ctx, deadline.Add(-min(most, time.Until(deadline)/10)))
}

// about says in err what was asked for, unless err says so itself. An error that
// explains nothing is given the code it has to be taken for.
func about(subject fmt.Stringer, effect wire.Effect, err error) error {
	if effect == wire.Reads && errors.Is(err, lease.ErrOutcomeUnknown) {
		return fmt.Errorf("%s: whether the cluster clock was moved on is not known: %w", subject, lease.ErrUnavailable)
	}
	switch lease.CodeOf(err) {
	case lease.CodeHeld, lease.CodeLost, lease.CodeInvalid, lease.CodeExhausted, lease.CodeNotWaiting:
		return err
	case lease.CodeUnavailable, lease.CodeOutcomeUnknown:
		return fmt.Errorf("%s: %w", subject, err)
	}
	if effect == wire.Mutates {
		return fmt.Errorf("%s: %w (%w)", subject, lease.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("%s: %w (%w)", subject, lease.ErrUnavailable, err)
}
