package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// Config is what a node is told by whoever runs it. [Config.Validate] checks it.
type Config struct {
	// ID is the node's name in the cluster, for ever: 1 to 64 of a-z, 0-9 and -.
	ID string
	// DataDir is the folder with everything the node must not lose. One process at a
	// time may use it; losing it makes the node a stranger to its cluster.
	DataDir string
	// PeerAddr and APIAddr are where other nodes, and clients, are told to reach this
	// one: host:port.
	PeerAddr string
	APIAddr  string
	// PeerListen and APIListen are where to listen if that differs.
	PeerListen string
	APIListen  string
	// HTTPAddr serves metrics, health and profiles; empty for none.
	HTTPAddr string
	// Cluster lists all the nodes that found the cluster, this one included. It is
	// read at founding only.
	Cluster []Peer
	// Dial overrides where this node dials some of its peers.
	Dial []Peer
	// MaxKeys is how many keys the cluster may have. It is read at founding only; 0
	// stands for [DefaultMaxKeys].
	MaxKeys uint64
	// LogStore is how the log is kept; a log of another kind is converted at the start.
	// The zero value keeps what the directory has, and bbolt where it has none.
	LogStore disk.LogKind
}

// Peer is a node's name and address.
type Peer struct {
	ID   string
	Addr string
}

// DefaultMaxKeys returns how many keys a cluster may have if nothing is said. A record
// is for ever, and a million of them take some hundred MiB.
func DefaultMaxKeys() uint64 { return fsm.DefaultSettings().MaxKeys }

const maxIDBytes = 64

// ParsePeers parses n1=host:port,n2=host:port.
func ParsePeers(list string) ([]Peer, error) {
	var peers []Peer
	for item := range strings.SplitSeq(list, ",") {
		id, addr, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form name=host:port", item)
		}
		peers = append(peers, Peer{ID: id, Addr: addr})
	}
	return peers, nil
}

// settings returns the bounds of the state of a cluster that c founds.
func (c Config) settings() fsm.Settings {
	settings := fsm.DefaultSettings()
	if c.MaxKeys > 0 {
		settings.MaxKeys = c.MaxKeys
	}
	return settings
}

// Validate returns every fault of c at once, joined, or nil.
func (c Config) Validate() error {
	faults := []error{validID("id", c.ID), validAddr("peer-addr", c.PeerAddr), validAddr("api-addr", c.APIAddr)}
	if c.DataDir == "" {
		faults = append(faults, errors.New("data-dir: is empty; name a folder of this node's own"))
	}
	for flag, addr := range map[string]string{"peer-listen": c.PeerListen, "api-listen": c.APIListen, "http-addr": c.HTTPAddr} {
		if addr != "" {
			faults = append(faults, validListen(flag, addr))
		}
	}
	if err := c.settings().Validate(); err != nil {
		faults = append(faults, fmt.Errorf("max-keys: %w", err))
	}
	faults = append(faults, validPeers("cluster", c.Cluster), validPeers("dial", c.Dial))
	if c.LogStore != "" && !slices.Contains(disk.LogKinds(), c.LogStore) {
		faults = append(faults, fmt.Errorf("log-store: there is no kind of log %q", c.LogStore))
	}
	own := slices.IndexFunc(c.Cluster, func(p Peer) bool { return p.ID == c.ID })
	switch {
	case own < 0:
		faults = append(faults, fmt.Errorf("cluster: does not list this node, %q; it must list all nodes", c.ID))
	case c.Cluster[own].Addr != c.PeerAddr:
		faults = append(faults, fmt.Errorf("cluster: lists this node, %q, at %s, but peer-addr is %s: they must be the same, since that is where the others look for it", c.ID, c.Cluster[own].Addr, c.PeerAddr))
	}
	return errors.Join(faults...)
}

// validFounders returns why c's list cannot found a cluster, or nil. A cluster that was
// founded by an earlier version may have any number of nodes.
func (c Config) validFounders() error {
	if n := len(c.Cluster); n%2 == 0 {
		return fmt.Errorf("cluster: lists %d nodes, which survive no more failures than %d, and cannot be changed once the cluster is founded: list 1, 3 or 5", n, n-1)
	}
	return nil
}

func validPeers(flag string, peers []Peer) error {
	seen := map[string]bool{}
	var faults []error
	for _, p := range peers {
		faults = append(faults, validID(flag, p.ID), validAddr(flag, p.Addr))
		if seen[p.ID] {
			faults = append(faults, fmt.Errorf("%s: lists %q twice", flag, p.ID))
		}
		seen[p.ID] = true
	}
	return errors.Join(faults...)
}

func validID(flag, id string) error {
	if id == "" || len(id) > maxIDBytes || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("%s: the name %q must be 1 to %d of a-z, 0-9 and -", flag, id, maxIDBytes)
	}
	return nil
}

// validAddr checks an address that others are told.
func validAddr(flag, addr string) error {
	if err := validListen(flag, addr); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(addr)
	if host == "" {
		return fmt.Errorf("%s: %q has no host; name the one that others reach this node by", flag, addr)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsUnspecified() {
		return fmt.Errorf("%s: %q stands for all addresses of a machine, and others are told it as it is, for good: name the one that they reach the node by; to listen at all of them, say so with --peer-listen and --api-listen", flag, addr)
	}
	return nil
}

// validListen checks an address to listen at, which may be without a host.
func validListen(flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %q is not host:port: %w", flag, addr, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%s: the port of %q must be 1 to 65535", flag, addr)
	}
	return nil
}
