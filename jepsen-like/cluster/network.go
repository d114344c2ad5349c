package cluster

import (
	"fmt"
	"strings"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/proxy"
)

// network are the lines of a cluster and the proxies on them.
type network struct {
	// lines and peers are by who sends, or dials, and who receives, or is dialed.
	lines [][]*proxy.Line
	peers [][]*proxy.Proxy
	// toClients and fromClients are the lines between all clients and a node.
	toClients, fromClients []*proxy.Line
	clients                []*proxy.Proxy
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

// openNetwork puts proxies, at addrs, before nodes at the addresses. On an error nothing
// of it is left.
func openNetwork(peers, apis, addrs []string) (*network, error) {
	n := len(peers)
	w := &network{lines: make([][]*proxy.Line, n), peers: make([][]*proxy.Proxy, n)}
	for from := range n {
		w.peers[from] = make([]*proxy.Proxy, n)
		for range n {
			w.lines[from] = append(w.lines[from], proxy.NewLine())
		}
		w.toClients = append(w.toClients, proxy.NewLine())
		w.fromClients = append(w.fromClients, proxy.NewLine())
	}
	for from := range n {
		for to := range n {
			cfg := proxy.Config{Listen: addrs[from*n+to], Target: peers[to], Forth: w.lines[from][to], Back: w.lines[to][from]}
			if from == to { // the pair that nobody needs is the one of the clients
				cfg.Target, cfg.Forth, cfg.Back = apis[to], w.fromClients[to], w.toClients[to]
			}
			p, err := proxy.Open(cfg)
			if err != nil {
				w.close()
				return nil, err
			}
			if from == to {
				w.clients = append(w.clients, p)
			} else {
				w.peers[from][to] = p
			}
		}
	}
	return w, nil
}

// before returns the proxies that stand before a node.
func (w *network) before(node int) []*proxy.Proxy {
	proxies := []*proxy.Proxy{w.clients[node]}
	for from := range w.peers {
		if from != node {
			proxies = append(proxies, w.peers[from][node])
		}
	}
	return proxies
}

// dialFlag is where a node dials the others.
func (w *network) dialFlag(node int) string {
	var items []string
	for to, p := range w.peers[node] {
		if to != node {
			items = append(items, nodeName(to)+"="+p.Addr())
		}
	}
	return strings.Join(items, ",")
}

// down says that a node does not listen any more.
func (w *network) down(node int) {
	for _, p := range w.before(node) {
		p.Down()
	}
}

func (w *network) close() {
	for _, p := range w.clients {
		p.Close()
	}
	for _, row := range w.peers {
		for _, p := range row {
			if p != nil {
				p.Close()
			}
		}
	}
}

// SetLink implements [nemesis.Target].
func (c *Cluster) SetLink(from, to int, state nemesis.LinkState) {
	c.network.lines[from][to].Set(state)
}

// SetClientLink implements [nemesis.Target]: both directions get the state.
func (c *Cluster) SetClientLink(node int, state nemesis.LinkState) {
	c.network.fromClients[node].Set(state)
	c.network.toClients[node].Set(state)
}
