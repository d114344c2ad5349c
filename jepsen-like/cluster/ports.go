package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below those that systems give to connections, so that nobody gets
// one by chance while its node or proxy does not listen.
const (
	firstPort = 10_000
	portCount = 20_000
	portTries = 10_000
)

// freeAddrs returns n addresses of this machine at which nobody listened just now.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	taken := map[int]bool{}
	for range portTries {
		if len(addrs) == n {
			return addrs, nil
		}
		port := firstPort + rand.N(portCount)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		ln, err := net.Listen("tcp", addr)
		if err != nil || taken[port] {
			if err == nil {
				_ = ln.Close()
			}
			continue
		}
		taken[port] = true
		_ = ln.Close()
		addrs = append(addrs, addr)
	}
	return nil, errors.New("there are not enough free ports on this machine")
}
