package workload

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// Direct is a [Store] that asks one node, once per call. Its methods are safe for
// concurrent use, and return the errors that [lease.Store] names.
type Direct struct {
	conn    *grpc.ClientConn
	service leasepb.LeaseServiceClient
}

var _ Store = (*Direct)(nil)

// NewDirect returns a store that asks the node at addr, host:port. It connects when it
// is first used, with dial or, if that is nil, as the system does.
func NewDirect(addr string, dial func(ctx context.Context, addr string) (net.Conn, error)) (*Direct, error) {
	options := append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
	)
	if dial != nil {
		options = append(options, grpc.WithContextDialer(dial))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	return &Direct{conn: conn, service: leasepb.NewLeaseServiceClient(conn)}, nil
}

// Close ends the connection.
func (d *Direct) Close() error { return d.conn.Close() }

// Acquire implements [Store].
func (d *Direct) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	p, err := wire.AcquireToProto(req)
	if err != nil {
		return lease.Answer{}, err
	}
	resp, err := d.service.Acquire(ctx, p)
	return outcome(resp, err, wire.Mutates)
}

// Renew implements [Store].
func (d *Direct) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	p, err := wire.RenewToProto(req)
	if err != nil {
		return lease.Answer{}, err
	}
	resp, err := d.service.Renew(ctx, p)
	return outcome(resp, err, wire.Mutates)
}

// Release implements [Store].
func (d *Direct) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	resp, err := d.service.Release(ctx, wire.ReleaseToProto(req))
	return outcome(resp, err, wire.Mutates)
}

// Forget implements [Store].
func (d *Direct) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	resp, err := d.service.Forget(ctx, wire.ForgetToProto(req))
	return outcome(resp, err, wire.Mutates)
}

// Get implements [Store].
func (d *Direct) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	resp, err := d.service.Get(ctx, wire.GetToProto(req))
	return outcome(resp, err, wire.Reads)
}

// outcome returns what a call was answered, or what its failure means.
func outcome(resp interface{ GetAnswer() *leasepb.Answer }, err error, effect wire.Effect) (lease.Answer, error) {
	if err != nil {
		return lease.Answer{}, wire.FromCall(err, effect)
	}
	answer, err := wire.AnswerFromProto(resp.GetAnswer())
	if err != nil && effect == wire.Mutates {
		return lease.Answer{}, fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, err)
	}
	return answer, err
}
