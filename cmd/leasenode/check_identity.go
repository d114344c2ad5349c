package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasenode/leasenode/raftnet"
)

// foundStrangers notes a problem if the nodes are not of one cluster.
func foundStrangers(nodes []*checkedNode) bool {
	var clusters []string
	for _, n := range nodes {
		if n.identity != nil && n.identity.ClusterID() != "" && !slices.Contains(clusters, n.identity.ClusterID()) {
			clusters = append(clusters, n.identity.ClusterID())
		}
	}
	if len(clusters) < 2 {
		return false
	}
	for _, n := range nodes {
		if n.identity != nil && n.identity.ClusterID() != "" {
			n.found(problemJSON{
				Kind: problemDiffers, Part: partIdentity,
				Message: fmt.Sprintf("%s is of the cluster %s, and these nodes are of several: %s", n.Dir, n.identity.ClusterID(), strings.Join(clusters, ", ")),
			})
		}
	}
	return true
}

// compareIdentities holds what nodes know of each other against what these are. A
// directory that was never in a founded cluster is held against all that were: it may
// have been put where a founder's was.
func compareIdentities(nodes []*checkedNode) {
	for _, knower := range nodes {
		if knower.identity == nil {
			continue
		}
		for _, n := range nodes {
			switch {
			case n.identity != nil && n != knower && (n.identity.ClusterID() == "" || n.identity.ClusterID() == knower.identity.ClusterID()):
				n.compareIdentity(knower)
			case n.empty:
				n.missed(knower.identity)
			}
		}
	}
}

// compareIdentity notes what n is otherwise than knower has met it.
func (n *checkedNode) compareIdentity(knower *checkedNode) {
	p := problemJSON{Kind: problemDiffers, Part: partIdentity, File: n.path(raftnet.IdentityFile), Place: "its content"}
	member, listed := knower.identity.Table.Member(n.identity.ID)
	seen := knower.identity.Seen[n.identity.ID]
	switch {
	case listed && member.Incarnation != n.identity.Incarnation && n.identity.ClusterID() == "":
		p.Message = fmt.Sprintf("%s is a new directory, and the cluster of the others was founded with another one of %s: do not start it; put that one back (this version cannot replace a node for good)", n.Dir, n.ID)
	case listed && member.Incarnation != n.identity.Incarnation:
		p.Message = fmt.Sprintf("%s is another directory of %s than the one that its cluster knows: put that one back (this version cannot replace a node for good)", n.Dir, n.ID)
	case seen.Starts > n.identity.Starts:
		p.Message = fmt.Sprintf("%s is an older copy: it was started %d times, and %s has met the node in its start %d; put the newest back (this version cannot replace a node for good)", n.Dir, n.identity.Starts, knower.ID, seen.Starts)
	case seen.Starts == n.identity.Starts && seen.Boot != n.identity.Boot:
		p.Message = fmt.Sprintf("%s is one of two copies that were both started: %s has met the other", n.Dir, knower.ID)
	default:
		return
	}
	n.foundOnce(p)
}

// missed notes that there is nothing of n, if knower has it as a founder.
func (n *checkedNode) missed(knower *raftnet.Identity) {
	if _, listed := knower.Table.Member(n.ID); listed {
		n.foundOnce(problemJSON{
			Kind: problemDamaged, Part: partIdentity, File: n.path(raftnet.IdentityFile), Place: "its directory",
			Message: fmt.Sprintf("there is nothing of node %s in %s, and its cluster was founded with it: put its directory back (this version cannot replace a node for good)", n.ID, n.Dir),
		})
	}
}
