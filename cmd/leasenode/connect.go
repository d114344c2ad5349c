package main

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// cluster is a cluster as the client commands see it.
type cluster interface {
	lease.Store
	lease.Watcher
	// Status describes the cluster as the first node that answers sees it. It needs
	// no leader.
	Status(ctx context.Context) (holder.Status, error)
	Close() error
}

// dialFunc connects to the cluster that has the endpoints. It does not wait for
// any of them.
type dialFunc func(endpoints []string) (cluster, error)

func dialCluster(endpoints []string) (cluster, error) {
	client, err := holder.Dial(endpoints)
	if err != nil {
		return nil, usagef("--endpoints cannot be %s: %w", strings.Join(endpoints, ","), err)
	}
	return client, nil
}

// validEndpoints returns what is wrong with the endpoints of the global flags.
func (a *app) validEndpoints() error {
	if len(a.endpoints) == 0 {
		return usagef("--endpoints is empty: name at least one node as host:port")
	}
	for _, endpoint := range a.endpoints {
		host, port, err := net.SplitHostPort(endpoint)
		n, fault := strconv.ParseUint(port, 10, 16)
		if err != nil || fault != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ ") {
			return usagef("--endpoints has %q: it must be of the form host:port, with a port from 1 to 65535, as in 127.0.0.1:7201", endpoint)
		}
	}
	return nil
}

// within returns ctx with the time that --timeout gives, and what is added to that.
func (a *app) within(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.timeout+more, &timeoutError{a.timeout})
}

// timeoutError ends what has taken longer than --timeout.
type timeoutError struct{ timeout time.Duration }

func (e *timeoutError) Error() string { return "no answer within " + brief(e.timeout) }
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// withCluster calls f with the cluster of the global flags.
func (a *app) withCluster(f func(cluster) error) error {
	if err := a.validEndpoints(); err != nil {
		return err
	}
	c, err := a.dial(a.endpoints)
	if err != nil {
		return err
	}
	// What was done is done, whatever closing says.
	defer func() { _ = c.Close() }()
	return f(c)
}
