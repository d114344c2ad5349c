package disk_test

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// counter is a state machine that counts what it was given.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Apply(*raft.Log) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func (c *counter) value() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counter) Snapshot() (raft.FSMSnapshot, error) { return counted(c.value()), nil }

func (c *counter) Restore(r io.ReadCloser) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := fmt.Fscan(r, &c.n)
	return err
}

type counted int

func (n counted) Persist(sink raft.SnapshotSink) error {
	if _, err := fmt.Fprintln(sink, int(n)); err != nil {
		return err
	}
	return sink.Close()
}

func (counted) Release() {}

// peer is a real raft on a real storage.
type peer struct {
	*raft.Raft
	*counter
	stores *disk.Stores
}

// startPeers starts a raft in each of dirs, connected to each other.
func startPeers(t *testing.T, dirs []string) []*peer {
	t.Helper()
	var founders raft.Configuration
	transports := make([]*raft.InmemTransport, len(dirs))
	for i := range dirs {
		id := fmt.Sprintf("n%d", i)
		founders.Servers = append(founders.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
		_, transports[i] = raft.NewInmemTransport(raft.ServerAddress(id))
	}
	for i, a := range transports {
		for j, b := range transports {
			if i != j {
				a.Connect(founders.Servers[j].Address, b)
			}
		}
	}
	peers := make([]*peer, len(dirs))
	for i, dir := range dirs {
		if dir == "" {
			continue
		}
		conf := raft.DefaultConfig()
		conf.LocalID, conf.Logger = founders.Servers[i].ID, hclog.NewNullLogger()
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = 100*time.Millisecond, 100*time.Millisecond, 50*time.Millisecond
		conf.CommitTimeout, conf.TrailingLogs, conf.SnapshotInterval = 5*time.Millisecond, 5, time.Hour
		p := &peer{counter: &counter{}, stores: open(t, config(t, dir))}
		if exists, err := raft.HasExistingState(p.stores.Logs, p.stores.Stable, p.stores.Snapshots); err != nil || !exists {
			must(t, err)
			must(t, raft.BootstrapCluster(conf, p.stores.Logs, p.stores.Stable, p.stores.Snapshots, transports[i], founders))
		}
		var err error
		p.Raft, err = raft.NewRaft(conf, p.counter, p.stores.Logs, p.stores.Stable, p.stores.Snapshots, transports[i])
		must(t, err)
		peers[i] = p
	}
	return peers
}

func stopPeers(t *testing.T, peers []*peer) {
	t.Helper()
	for _, p := range peers {
		if p != nil {
			must(t, p.Shutdown().Error())
			closeStores(t, p.stores)
		}
	}
}

// apply has n more counted.
func apply(t *testing.T, peers []*peer, n int) {
	t.Helper()
	for done := 0; done < n; {
		eventually(t, "a leader", func() bool {
			for _, p := range peers {
				if p != nil && p.State() == raft.Leader {
					if err := p.Raft.Apply([]byte("one more"), time.Second).Error(); err == nil {
						done++
					}
					return true
				}
			}
			return false
		})
	}
}

// A follower that was away for longer than the log reaches back is given a snapshot,
// and then entries that do not join on to its log.
func TestRaftGoesOnBehindASnapshot(t *testing.T) { onEach(t, testRaftGoesOnBehindASnapshot) }

func testRaftGoesOnBehindASnapshot(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	peers := startPeers(t, dirs)
	apply(t, peers, 10)
	stopPeers(t, peers)

	peers = startPeers(t, []string{dirs[0], dirs[1], ""})
	apply(t, peers, 50)
	for _, p := range peers[:2] {
		eventually(t, "all to be applied", func() bool { return p.value() >= 60 })
		must(t, p.Raft.Snapshot().Error())
		if first, err := p.stores.Logs.FirstIndex(); first < 40 || err != nil {
			t.Fatalf("the log begins at %d, %v", first, err)
		}
	}
	apply(t, peers, 10)
	stopPeers(t, peers)

	for range 2 { // once more from what is then on the disks
		peers = startPeers(t, dirs)
		apply(t, peers, 10)
		eventually(t, "all to have counted the same", func() bool {
			return peers[0].value() == peers[1].value() && peers[1].value() == peers[2].value() && peers[0].value() >= 80
		})
		if first, err := peers[2].stores.Logs.FirstIndex(); first < 40 || err != nil {
			t.Errorf("the log begins at %d, %v", first, err)
		}
		stopPeers(t, peers)
	}
}
