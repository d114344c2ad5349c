package main

import (
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

// startWatchers has watchers follow all keys of the run, by clients that closeAll closes
// once they have finished.
func (t *trial) startWatchers(endpoints []string) (closeAll func(), err error) {
	var clients []*holder.Client
	closeAll = func() {
		if t.follow != nil {
			t.follow.Stop()
		}
		for _, client := range clients {
			_ = client.Close() // nothing is asked any more
		}
	}
	dial := func(endpoints ...string) *holder.Client {
		client, failed := holder.Dial(endpoints, holder.StayWithEndpoints())
		if failed != nil {
			err = failed
			return nil
		}
		clients = append(clients, client)
		return client
	}
	o := workload.WatchOptions{Seed: t.seed, Prefix: t.prefix, Any: dial(endpoints...), Now: t.now, Sink: t.tally}
	for i, endpoint := range endpoints {
		o.Endpoints = append(o.Endpoints, workload.WatchEndpoint{Node: t.each[i].Node, Watcher: dial(endpoint)})
	}
	if err != nil {
		closeAll()
		return nil, err
	}
	t.follow = workload.StartWatchers(o)
	return closeAll, nil
}
