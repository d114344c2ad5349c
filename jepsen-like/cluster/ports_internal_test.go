package cluster

import "testing"

// Clusters of one machine never share a port, also while nobody listens at it: a node
// that is down has its port when it comes back.
func TestClustersSharePortsNever(t *testing.T) {
	seen := map[string]bool{}
	for range portBlocks / 3 {
		p, err := claimPorts()
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		addrs, err := p.addrs(99)
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range addrs {
			if seen[addr] {
				t.Fatalf("%s is given twice", addr)
			}
			seen[addr] = true
		}
	}
}
