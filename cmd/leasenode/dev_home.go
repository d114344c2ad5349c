package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// The files of dev in the folder of its cluster. The lock is held while a dev runs
// there; the layout is written once; the control file says where the running dev
// listens for "dev restart", and is gone when none runs.
const (
	lockFile    = "dev.lock"
	layoutFile  = "cluster.json"
	controlFile = "dev.json"
)

// devHome is the folder of a cluster, locked for one dev.
type devHome struct {
	dir  string
	lock *flock.Flock
}

// devLayout is what cannot be changed once the cluster was founded: the nodes know
// each other by it.
type devLayout struct {
	Nodes    int `json:"nodes"`
	PeerPort int `json:"peer_port"`
}

// openDevHome makes and locks the folder of plan, and refuses one that another dev
// uses or that holds a cluster of another layout.
func openDevHome(plan devPlan) (*devHome, error) {
	if err := os.MkdirAll(plan.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot use --data-dir %s: %w", plan.dir, err)
	}
	h := &devHome{dir: plan.dir, lock: flock.New(filepath.Join(plan.dir, lockFile))}
	locked, err := h.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot use --data-dir %s: %w", plan.dir, err)
	}
	if !locked {
		return nil, fmt.Errorf(`another "leasenode dev" runs in %s: stop it first, or choose another --data-dir`, plan.dir)
	}
	if err := h.checkLayout(plan); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *devHome) checkLayout(plan devPlan) error {
	path := filepath.Join(h.dir, layoutFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the layout of the cluster: %w", err)
	}
	var layout devLayout
	if err := json.Unmarshal(text, &layout); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	switch {
	case layout.Nodes != plan.nodes:
		return usagef("%s holds a cluster of %d: run it with --nodes %d, or choose another --data-dir for one of %d", h.dir, layout.Nodes, layout.Nodes, plan.nodes)
	case layout.PeerPort != plan.peerPort:
		return usagef("%s holds a cluster whose nodes know each other from --peer-port %d: run it with that, or choose another --data-dir", h.dir, layout.PeerPort)
	default:
		return nil
	}
}

// found notes the layout of plan and makes the folders of its nodes.
func (h *devHome) found(plan devPlan) error {
	for _, m := range plan.members() {
		if err := os.MkdirAll(m.dir, 0o700); err != nil {
			return fmt.Errorf("make the folder of %s: %w", m.id, err)
		}
	}
	return h.write(layoutFile, devLayout{Nodes: plan.nodes, PeerPort: plan.peerPort})
}

// write replaces a file of the folder as a whole. Nobody else can read it.
func (h *devHome) write(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// close unlocks the folder.
func (h *devHome) close() error {
	if err := h.lock.Unlock(); err != nil {
		return fmt.Errorf("unlock %s: %w", h.dir, err)
	}
	return nil
}
