package faulty

import (
	"math/rand/v2"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet"
)

const (
	// dropOneOf is how many entries there are for one that is dropped, on average.
	dropOneOf = 25
	// dropFromBytes spares the entries that carry a clock and no mutation.
	dropFromBytes = 48
)

// dropEntries has a node lose entries that it is sent, so that its state machine skips
// them. Which ones is chance, so that rarely two nodes lose the same.
func dropEntries(p *node.Parts) {
	inner := p.NewTransport
	p.NewTransport = func(port *raftnet.Port, logger hclog.Logger) raftnet.Transport {
		return newDropping(inner(port, logger), logger)
	}
}

// dropping is a transport that puts entries without effect in the place of some.
type dropping struct {
	raftnet.Transport
	logger hclog.Logger
	out    chan raft.RPC
	stop   chan struct{}
	once   sync.Once
	joined sync.WaitGroup
}

func newDropping(inner raftnet.Transport, logger hclog.Logger) *dropping {
	d := &dropping{Transport: inner, logger: logger, out: make(chan raft.RPC), stop: make(chan struct{})}
	d.joined.Go(d.passLoop)
	return d
}

func (d *dropping) passLoop() {
	for {
		select {
		case <-d.stop:
			return
		case rpc := <-d.Transport.Consumer():
			d.alter(rpc)
			select {
			case d.out <- rpc:
			case <-d.stop:
				return
			}
		}
	}
}

func (d *dropping) alter(rpc raft.RPC) {
	request, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok {
		return
	}
	for _, entry := range request.Entries {
		if entry.Type == raft.LogCommand && len(entry.Data) >= dropFromBytes && rand.N(dropOneOf) == 0 {
			d.logger.Warn("an entry is dropped, as this node is made to", "index", entry.Index)
			entry.Type, entry.Data = raft.LogNoop, nil
		}
	}
}

func (d *dropping) Consumer() <-chan raft.RPC { return d.out }

func (d *dropping) Close() error {
	d.once.Do(func() { close(d.stop) })
	d.joined.Wait()
	return d.Transport.Close()
}
