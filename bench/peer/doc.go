// Package peer runs the systems that are compared: three processes each of etcd, of
// ZooKeeper where it is installed, and of leasenode, and one of Redis where it is
// installed. All have their default tuning, listen on loopback, and fsync what they
// acknowledge.
//
// It starts, watches, kills and restarts them. What is done with them is not its
// business. Start reading at [Cluster].
package peer
