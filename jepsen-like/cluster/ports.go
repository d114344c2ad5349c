package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below those that systems give to connections, so that nobody gets
// one by chance while its node or proxy does not listen. Nor does another cluster of this
// machine: each has a block of ports, at whose first it listens all the time.
const (
	firstPort  = 10_000
	portBlocks = 150
	blockPorts = 150 // nine nodes with all proxies take 99
	blockTries = 1000
)

// ports is a block of ports that is one cluster's.
type ports struct {
	guard net.Listener
	next  int
	end   int
}

// claimPorts takes a block that no other cluster has.
func claimPorts() (*ports, error) {
	for range blockTries {
		first := firstPort + blockPorts*rand.N(portBlocks)
		if guard, err := net.Listen("tcp", loopback(first)); err == nil {
			return &ports{guard: guard, next: first + 1, end: first + blockPorts}, nil
		}
	}
	return nil, errors.New("there is no block of free ports on this machine")
}

// addrs returns n addresses of the block at which nobody listens.
func (p *ports) addrs(n int) ([]string, error) {
	var addrs []string
	for ; len(addrs) < n; p.next++ {
		if p.next == p.end {
			return nil, errors.New("there are not enough free ports in the block of this cluster")
		}
		if ln, err := net.Listen("tcp", loopback(p.next)); err == nil {
			_ = ln.Close()
			addrs = append(addrs, loopback(p.next))
		}
	}
	return addrs, nil
}

func (p *ports) close() { _ = p.guard.Close() }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
