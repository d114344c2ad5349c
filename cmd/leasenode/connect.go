package main

import (
	"context"
	"strings"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// cluster is a cluster as the client commands see it.
type cluster interface {
	lease.Store
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

// withCluster calls f with the cluster of the global flags.
func (a *app) withCluster(f func(cluster) error) error {
	c, err := a.dial(a.endpoints)
	if err != nil {
		return err
	}
	// What was done is done, whatever closing says.
	defer func() { _ = c.Close() }()
	return f(c)
}
