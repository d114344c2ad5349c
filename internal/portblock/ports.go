// Package portblock hands out ports of 127.0.0.1 that nobody else gets: neither another
// test or cluster of this machine that asks here, nor a connection by chance while what
// is to listen there does not.
package portblock

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Blocks are below the ports that systems give to connections. Whoever has one listens at
// its first port all the time.
const (
	firstPort  = 10_000
	portBlocks = 150
	blockPorts = 150 // nine nodes with all proxies between them take 99
	blockTries = 1000
)

// Block is a block of ports. It is for one goroutine at a time.
type Block struct {
	guard net.Listener
	next  int
	end   int
}

// Claim takes a block that nobody has. It has to be closed.
func Claim() (*Block, error) {
	for range blockTries {
		first := firstPort + blockPorts*rand.N(portBlocks)
		if guard, err := net.Listen("tcp", Addr(first)); err == nil {
			return &Block{guard: guard, next: first + 1, end: first + blockPorts}, nil
		}
	}
	return nil, errors.New("there is no block of free ports on this machine")
}

// Addrs returns n addresses of the block at which nobody listens and that it has not
// given before.
func (p *Block) Addrs(n int) ([]string, error) {
	var addrs []string
	for ; len(addrs) < n; p.next++ {
		if p.next == p.end {
			return nil, errors.New("there are not enough free ports in this block")
		}
		if free(p.next) {
			addrs = append(addrs, Addr(p.next))
		}
	}
	return addrs, nil
}

// Row returns the first of n consecutive ports of the block at which nobody listens and
// that it has not given before.
func (p *Block) Row(n int) (int, error) {
	for first := p.next; first+n <= p.end; first++ {
		length := 0
		for length < n && free(first+length) {
			length++
		}
		if length == n {
			p.next = first + n
			return first, nil
		}
	}
	return 0, errors.New("there are not enough free ports in this block")
}

// Close lets others have the block.
func (p *Block) Close() error { return p.guard.Close() }

// free asks by dialling. A listener of our own would be open for a moment longer than it
// is here in every child that is being forked meanwhile, and so in the way of whoever is
// given the port.
func free(port int) bool {
	conn, err := net.DialTimeout("tcp", Addr(port), time.Second)
	return err != nil || conn.Close() != nil
}

// Addr returns the address of a port.
func Addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
