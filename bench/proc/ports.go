package proc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Loopback is where everything listens.
const Loopback = "127.0.0.1"

// Ports finds ports for a run. It is not safe for concurrent use.
type Ports struct {
	given map[int]bool
}

// Take returns n addresses that nobody listened on just now, and that it has not
// returned before: below the range from which the system takes ports for connections,
// so that they stay free while their owner is down.
func (p *Ports) Take(n int) ([]string, error) {
	const first, last = 10_000, 30_000
	if p.given == nil {
		p.given = map[int]bool{}
	}
	var taken []string
	for range 1000 {
		if len(taken) == n {
			return taken, nil
		}
		port := first + rand.IntN(last-first)
		addr := net.JoinHostPort(Loopback, strconv.Itoa(port))
		if p.given[port] {
			continue
		}
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, fmt.Errorf("try port %d: %w", port, err)
		}
		p.given[port] = true
		taken = append(taken, addr)
	}
	return nil, errors.New("find free ports: 1,000 were tried")
}
