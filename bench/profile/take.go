package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/leasenode/leasenode/bench/client"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/lease"
)

// load is how many clients acquire distinct keys, and for how long they are watched.
type load struct{ clients, seconds int }

// warm is how long they do so before.
const warm = 2 * time.Second

// kinds are the profiles of a node, by what is asked for, and the sample value in each.
var kinds = []struct{ path, value string }{{"profile", "cpu"}, {"allocs", "alloc_space"}, {"block", "delay"}, {"mutex", "delay"}}

// taken are the profiles of one run, one after the other: each slows down what it looks at.
type taken struct {
	name string
	// rate is acquires a second while each kind was taken.
	rate map[string]float64
	// leader and follower are by kind.
	leader, follower map[string]*profile.Profile
}

// fill takes the profiles of a cluster under load.
func (t *taken) fill(ctx context.Context, cluster *peer.Cluster, l load) error {
	t.rate, t.leader, t.follower = map[string]float64{}, map[string]*profile.Profile{}, map[string]*profile.Profile{}
	session, err := client.DialLeasenode(cluster.Addrs(), min(l.clients, client.Connections))
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // what was measured is there
	leader, err := cluster.Leader(ctx)
	if err != nil {
		return err
	}
	follower := (leader + 1) % len(cluster.Addrs())
	var pool client.Pool[lease.Record]
	for _, kind := range kinds {
		err := t.takeKind(ctx, kind.path, session.Acquire(&pool), l, [2]string{cluster.Metrics()[leader], cluster.Metrics()[follower]})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeKind takes one kind of both nodes while the load runs.
func (t *taken) takeKind(ctx context.Context, kind string, call measure.Call, l load, urls [2]string) error {
	var profiles [2]*profile.Profile
	var failed [2]error
	var fetching sync.WaitGroup
	edge := 0
	load := measure.Load{Clients: l.clients, Warm: warm, Window: time.Duration(l.seconds) * time.Second}
	load.AtEdge = func() {
		if edge++; edge > 1 {
			return
		}
		for i, url := range urls {
			fetching.Go(func() { profiles[i], failed[i] = fetch(ctx, url, kind, l.seconds) })
		}
	}
	result, err := load.Run(ctx, call)
	fetching.Wait()
	if err := errors.Join(err, failed[0], failed[1]); err != nil {
		return err
	}
	t.rate[kind], t.leader[kind], t.follower[kind] = result.Rate(), profiles[0], profiles[1]
	return nil
}

// fetch takes a profile from a node, whose metrics are at url.
func fetch(ctx context.Context, url, kind string, seconds int) (*profile.Profile, error) {
	url = fmt.Sprintf("%s/debug/pprof/%s?seconds=%d", strings.TrimSuffix(url, "/metrics"), kind, seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("take a profile: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("take a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return nil, fmt.Errorf("take a profile: %s: %s %s", url, response.Status, text)
	}
	p, err := profile.Parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the profile of %s: %w", url, err)
	}
	return p, nil
}
