// Package client does the same work on each system, in the way its users would: what
// acquires, renews, releases, reads and hands over, as a [measure.Call] that a load can be
// put on.
//
// Both ways in which etcd's users take a lease are here: one of its own for each key,
// which is the like of ours, and one that many keys share, which is cheaper, and with
// which all of them die together.
//
// The clients are those that each system's users have, with their default settings. Start
// reading at [Leasenode].
package client

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"
)

// ttl is longer than a run, so that no lease ends in it.
const ttl = time.Hour

// Connections is how many clients of etcd and of leasenode share a load, if it is of that
// many callers. A client of etcd has a connection to each member, one of leasenode uses
// that to the leader.
const Connections = 4

// writeTimeout bounds one try of a writer that waits for a new leader.
const writeTimeout = 250 * time.Millisecond

// owner names a caller.
func owner(caller int) string { return fmt.Sprintf("owner-%d", caller) }

// keys names keys of one session, each once. It is safe for concurrent use.
type keys struct {
	prefix string
	made   atomic.Int64
}

func newKeys() *keys { return &keys{prefix: "bench-" + rand.Text()[:10] + "/"} }

func (k *keys) next() string { return fmt.Sprintf("%s%d", k.prefix, k.made.Add(1)) }
