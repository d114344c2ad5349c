package portblock_test

import (
	"net"
	"testing"

	"github.com/leasenode/leasenode/internal/portblock"
)

// Those who ask never share a port, also while nobody listens at it: a node that is down
// has its port when it comes back.
func TestPortsAreNeverShared(t *testing.T) {
	seen := map[string]bool{}
	take := func(addr string) {
		if seen[addr] {
			t.Fatalf("%s is given twice", addr)
		}
		seen[addr] = true
	}
	for range 50 {
		p, err := portblock.Claim()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		addrs, err := p.Addrs(99)
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range addrs {
			take(addr)
		}
		first, err := p.Row(20)
		if err != nil {
			t.Fatal(err)
		}
		for port := first; port < first+20; port++ {
			take(portblock.Addr(port))
		}
		if _, err := p.Row(60); err == nil {
			t.Fatal("a block has more ports than it has")
		}
	}
}

func TestPortsThatAreTakenAreLeftOut(t *testing.T) {
	p, err := portblock.Claim()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	first, err := p.Row(1)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", portblock.Addr(first+2))
	if err != nil {
		t.Skipf("somebody else listens there: %v", err)
	}
	defer ln.Close()
	if row, err := p.Row(2); err != nil || row <= first+2 {
		t.Errorf("a row from %d on, %v, though somebody listens at %d", row, err, first+2)
	}
}
