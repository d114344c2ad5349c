package peer

import (
	"fmt"
	"path/filepath"

	"github.com/leasenode/leasenode/bench/proc"
)

// Home is where clusters are made.
type Home struct {
	// Dir is a folder on the storage that is measured.
	Dir   string
	Ports *proc.Ports
}

// member is the place of one member.
type member struct {
	name string
	dir  string
	// client, peer and election are addresses. What needs no election has its metrics
	// there, or nothing.
	client, peer, election string
}

// members finds a place for each of n members of a cluster.
func (h Home) members(system string, n int) ([]member, error) {
	var places []member
	for i := range n {
		addrs, err := h.Ports.Take(3)
		if err != nil {
			return nil, fmt.Errorf("make a cluster of %s: %w", system, err)
		}
		name := fmt.Sprintf("n%d", i+1)
		dir, err := filepath.Abs(filepath.Join(h.Dir, system, name))
		if err != nil {
			return nil, fmt.Errorf("make a cluster of %s: %w", system, err)
		}
		places = append(places, member{name: name, dir: dir, client: addrs[0], peer: addrs[1], election: addrs[2]})
	}
	return places, nil
}
