package node_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet"
)

// What others are told has to be an address that they can reach; what is listened at
// need not.
func TestAnAddressOfAllIsNotToldToOthers(t *testing.T) {
	valid := func(change func(*node.Config)) error {
		cfg := node.Config{ID: "n1", DataDir: "d", PeerAddr: "10.0.0.1:7101", APIAddr: "10.0.0.1:7201", Cluster: []node.Peer{{ID: "n1", Addr: "10.0.0.1:7101"}}}
		change(&cfg)
		return cfg.Validate()
	}
	for _, host := range []string{"0.0.0.0", "[::]", "[::ffff:0.0.0.0]"} {
		for flag, change := range map[string]func(*node.Config){
			"peer-addr": func(c *node.Config) { c.PeerAddr = host + ":7101"; c.Cluster[0].Addr = c.PeerAddr },
			"api-addr":  func(c *node.Config) { c.APIAddr = host + ":7201" },
			"cluster":   func(c *node.Config) { c.Cluster = append(c.Cluster, node.Peer{ID: "n2", Addr: host + ":1"}) },
		} {
			err := valid(change)
			if err == nil || !strings.Contains(err.Error(), flag+`: "`+host) || !strings.Contains(err.Error(), "--peer-listen and --api-listen") {
				t.Errorf("%s of %s: %v", flag, host, err)
			}
		}
	}
	err := valid(func(c *node.Config) { c.PeerListen, c.APIListen, c.HTTPAddr = "0.0.0.0:7101", "[::]:7201", ":1" })
	if err != nil {
		t.Errorf("to listen at: %v", err)
	}
}

func TestAnEvenNumberOfNodesFoundsNothing(t *testing.T) {
	for _, n := range []int{2, 4} {
		c := newCluster(t, n)
		opened, err := c.open(c.within(time.Minute), 0)
		if err == nil {
			_ = opened.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "cluster: lists") || !strings.Contains(err.Error(), "list 1, 3 or 5") {
			t.Errorf("%d nodes: %v", n, err)
		}
		identity, err := raftnet.ReadIdentity(c.config(0).DataDir)
		if err != nil || len(identity.Table) > 0 {
			t.Errorf("%d nodes: %v, %v", n, identity, err)
		}
	}
}

// A cluster of two that exists goes on.
func TestAnEvenClusterThatWasFoundedStarts(t *testing.T) {
	c := newCluster(t, 2)
	ids := make([]*raftnet.Identity, len(c.peers))
	var table raftnet.Table
	for i, p := range c.peers {
		if err := os.MkdirAll(c.config(i).DataDir, 0o700); err != nil {
			t.Fatal(err)
		}
		identity, err := raftnet.OpenIdentity(c.config(i).DataDir, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = identity
		table = append(table, raftnet.Member{ID: p.ID, Incarnation: identity.Incarnation, Addr: p.Addr})
	}
	for _, identity := range ids {
		if err := identity.SetTable(table); err != nil {
			t.Fatal(err)
		}
	}
	c.startAll()
}
