package holder

import (
	"context"
	"crypto/rand"
	"errors"
	"net"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// Client talks to a cluster. It implements [lease.Store]; its methods are safe for
// concurrent use. A call without a deadline goes on until its context is cancelled.
//
// When the context ends and some try of a mutation may have been done, the error is
// [lease.ErrOutcomeUnknown]; if certainly none was, [lease.ErrUnavailable].
type Client struct {
	conns *conns
}

var _ lease.Store = (*Client)(nil)

// Option changes how a client works.
type Option func(*conns)

// StayWithEndpoints has the client use its endpoints only, and not the addresses that
// nodes name: for networks in which clients do not reach those. Any node passes on to
// the leader what it cannot do itself.
func StayWithEndpoints() Option { return func(c *conns) { c.stay = true } }

// DialWith has the client make its connections with dial, which is given host:port as
// the endpoints and nodes name it: for proxies, and networks that are not the system's.
func DialWith(dial func(ctx context.Context, addr string) (net.Conn, error)) Option {
	return func(c *conns) { c.dial = dial }
}

// WithLogger has logger hear, as a warning, when no node has served what was asked of the
// client for about 5 s, and rarely again while that goes on, with the addresses that were
// asked and the latest error; and when one serves again. That goes for watches and
// observations, too, which tell nothing else of it. What a [Holder] asks is told to its
// own logger instead.
func WithLogger(logger hclog.Logger) Option { return func(c *conns) { c.contact.log = logger } }

// Dial returns a client of the cluster that has the endpoints, host:port each, in any
// order. The host is a name or an address, an IPv6 one in brackets; without a host it is
// this machine. There is no default port, and no scheme before the host. With [DialWith]
// an endpoint is whatever that dials.
//
// It connects when it is first used: only endpoints that cannot be such are an error
// here, an [*lease.InvalidError] of field "endpoints".
func Dial(endpoints []string, options ...Option) (*Client, error) {
	c, err := newConns(endpoints, options)
	if err != nil {
		return nil, err
	}
	return &Client{conns: c}, nil
}

// Close ends the connections. Calls that are waiting for an answer fail.
func (c *Client) Close() error { return c.conns.close() }

// Acquire implements [lease.Store]. All tries of one call carry one request id: that
// of the request or, if it has none, a random one. If such a random one turns out to
// name a grant that has ended before its answer came, the call goes on under another:
// it never held anything.
//
// With a Wait, the call is a row of polls over connections of their own, so that however
// many wait, renewals are not held up. When the leader changes it joins the next one's
// line, with the place that it has by its length. If ctx ends before the wait does, the
// error is [lease.ErrOutcomeUnknown], since the key may be granted in that instant; the
// cluster then takes it back. A deadline shortens the wait, and the refusal is known.
func (c *Client) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if req.Wait != 0 {
		latest := &latestTry{}
		answer, err := c.wait(context.WithValue(ctx, latestTryKey{}, latest), req)
		return answer, latest.explain(ctx, req.Key, err)
	}
	p, err := wire.AcquireToProto(req)
	if err != nil {
		return lease.Answer{}, err
	}
	ours := req.RequestID == ""
	if ours {
		p.RequestId = []byte(rand.Text())
	}
	return mutate(ctx, c, c.acquisition(p, ours))
}

// acquisition returns the attempt that p is. If its request id is ours, another can
// take its place.
func (c *Client) acquisition(p *leasepb.AcquireRequest, ours bool) attempt[*leasepb.AcquireResponse] {
	a := attempt[*leasepb.AcquireResponse]{
		subject: subjectOf(lease.OpAcquire, string(p.GetKey())),
		do:      func(ctx context.Context, s service) (*leasepb.AcquireResponse, error) { return s.Acquire(ctx, p) },
	}
	if ours {
		a.anew = func(refusal error) bool {
			p.RequestId = []byte(rand.Text())
			_, lost := errors.AsType[*lease.LostError](refusal)
			return lost
		}
	}
	return a
}

// Renew implements [lease.Store].
func (c *Client) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	p, err := wire.RenewToProto(req)
	if err != nil {
		return lease.Answer{}, err
	}
	return mutate(ctx, c, attempt[*leasepb.RenewResponse]{
		subject: subjectOf(lease.OpRenew, req.Key),
		do:      func(ctx context.Context, s service) (*leasepb.RenewResponse, error) { return s.Renew(ctx, p) },
	})
}

// Release implements [lease.Store].
func (c *Client) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	p := wire.ReleaseToProto(req)
	return mutate(ctx, c, attempt[*leasepb.ReleaseResponse]{
		subject: subjectOf(lease.OpRelease, req.Key),
		do:      func(ctx context.Context, s service) (*leasepb.ReleaseResponse, error) { return s.Release(ctx, p) },
	})
}

// Forget implements [lease.Store].
func (c *Client) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	p := wire.ForgetToProto(req)
	return mutate(ctx, c, attempt[*leasepb.ForgetResponse]{
		subject: subjectOf(lease.OpForget, req.Key),
		do:      func(ctx context.Context, s service) (*leasepb.ForgetResponse, error) { return s.Forget(ctx, p) },
	})
}

// BatchRenew implements [lease.Store]. The whole batch is tried again only if the call
// failed as a whole: results of single renewals are the caller's to look at.
func (c *Client) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	p := &leasepb.BatchRenewRequest{Renewals: make([]*leasepb.RenewRequest, len(reqs))}
	invalid := make([]error, len(reqs))
	for i, req := range reqs {
		p.Renewals[i], invalid[i] = wire.RenewToProto(req)
		if invalid[i] != nil { // what cannot be said on the wire keeps its place
			p.Renewals[i] = &leasepb.RenewRequest{}
		}
	}
	resp, err := call(ctx, c.conns, attempt[*leasepb.BatchRenewResponse]{
		subject: wire.Renewals(len(reqs)),
		effect:  wire.Mutates,
		do:      func(ctx context.Context, s service) (*leasepb.BatchRenewResponse, error) { return s.BatchRenew(ctx, p) },
	})
	if err != nil {
		return nil, err
	}
	outcomes, err := wire.OutcomesFromProto(resp, len(reqs))
	if err != nil {
		return nil, err
	}
	for i, err := range invalid {
		if err != nil {
			outcomes[i] = lease.Outcome{Err: err}
		}
	}
	return outcomes, nil
}

// Get implements [lease.Store].
func (c *Client) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	p := wire.GetToProto(req)
	a := attempt[*leasepb.GetResponse]{
		subject: wire.Subject{What: "get", Key: req.Key},
		do:      func(ctx context.Context, s service) (*leasepb.GetResponse, error) { return s.Get(ctx, p) },
	}
	resp, err := read(ctx, c, req.Consistency, a)
	if err != nil {
		return lease.Answer{}, err
	}
	answer, err := wire.AnswerFromProto(resp.GetAnswer())
	return answer, a.malformed(err)
}

// List implements [lease.Store].
func (c *Client) List(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
	p, err := wire.ListToProto(req)
	if err != nil {
		return lease.ListPage{}, err
	}
	a := attempt[*leasepb.ListResponse]{
		subject: wire.Subject{What: "list", Key: req.Prefix},
		do:      func(ctx context.Context, s service) (*leasepb.ListResponse, error) { return s.List(ctx, p) },
	}
	resp, err := read(ctx, c, req.Consistency, a)
	if err != nil {
		return lease.ListPage{}, err
	}
	page, err := wire.ListPageFromProto(resp)
	return page, a.malformed(err)
}

// History implements [lease.Store].
func (c *Client) History(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	p, err := wire.HistoryToProto(req)
	if err != nil {
		return lease.HistoryPage{}, err
	}
	a := attempt[*leasepb.HistoryResponse]{
		subject: wire.Subject{What: "history", Key: req.Key},
		do:      func(ctx context.Context, s service) (*leasepb.HistoryResponse, error) { return s.History(ctx, p) },
	}
	resp, err := read(ctx, c, req.Consistency, a)
	if err != nil {
		return lease.HistoryPage{}, err
	}
	page, err := wire.HistoryPageFromProto(resp)
	return page, a.malformed(err)
}
