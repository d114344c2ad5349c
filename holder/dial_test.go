package holder_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// The option's dial is given the addresses as the caller and the nodes name them: no
// resolver has to know them.
func TestItDialsAsItIsTold(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	leader, follower := nodes[0], nodes[1]
	named := map[string]string{"follower.invalid:1": follower.addr, "leader.invalid:2": leader.addr}
	follower.set(func() { follower.leader.APIAddr = "leader.invalid:2" })
	leader.set(func() { leader.leader.APIAddr = "leader.invalid:2" })
	var mu sync.Mutex
	var dialed []string
	c, err := holder.Dial([]string{"follower.invalid:1"}, holder.DialWith(func(ctx context.Context, addr string) (net.Conn, error) {
		mu.Lock()
		dialed = append(dialed, addr)
		mu.Unlock()
		var d net.Dialer
		return d.DialContext(ctx, "tcp", named[addr])
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	acquired(t, c, acquireK)
	if _, err := c.Renew(within(t, long), lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"follower.invalid:1", "leader.invalid:2"}; !slices.Equal(slices.Compact(dialed), want) {
		t.Errorf("it dialed %v, want %v", dialed, want)
	}
	if leader.count() == 0 {
		t.Error("it did not follow to the leader")
	}
}
