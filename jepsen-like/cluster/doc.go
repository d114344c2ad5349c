// Package cluster runs a cluster of real processes on this machine that faults can be
// done to: it is a [nemesis.Target].
//
// Each node dials each other one through a proxy of its own, so that every directed pair
// has a line that can be cut, and clients reach each node through a proxy, where they are
// also told to find it. Nodes are called n1, n2 and so on. In the cluster's folder n1 has
// what node n1 keeps, and n1.log what it said, over all its starts.
//
// The program is leasenode as it is, or the harness's own chaosnode, whose clock and disk
// can be made to go wrong: [Cluster.Controls] says what is possible.
//
// No process outlives [Cluster.Close], nor this program: where the system does not see to
// that, nodes notice that the program is gone, unless they stand still. A disk that was
// mounted does outlive this program, if it is killed.
package cluster
