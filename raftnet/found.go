package raftnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// FoundingView is what a node that founds a cluster knows, as it tells the others.
type FoundingView struct {
	// List is who the node was told to found the cluster with, itself included, as
	// id=address, in order.
	List []string `json:"list,omitempty"`
	// Met are the incarnations of the nodes it has met, its own included.
	Met map[string]string `json:"met,omitempty"`
	// Founded is the table of a cluster that exists already.
	Founded Table `json:"founded,omitempty"`
}

// Founding is the meeting of the nodes that found a cluster. A cluster is founded
// only when every listed node has met every other one, all without data, with the
// same list and the same incarnations; each then writes that table, and only then
// starts raft. So a node whose disk was wiped afterwards is told from the one that
// was there, and even a majority of wiped nodes cannot found a second cluster while
// one of the founders is there to say that the first exists.
type Founding struct {
	identity *Identity
	list     map[string]string // id to address
	logger   hclog.Logger
	changed  chan struct{} // one pending signal

	mu    sync.Mutex
	met   map[string]string
	views map[string]FoundingView
	// complaints are what was said last of a node that something is wrong with.
	complaints map[string]string
	table      Table // once it is decided
	fault      error // why it can never be
}

// foundingPause is how long a founding node waits before it asks the others again.
const foundingPause = 200 * time.Millisecond

// Found has the node meet those in list, id to address and itself among them,
// through port, until the cluster is founded. It writes the table to the identity
// and returns it. While nodes are missing it says so in the log and goes on for as
// long as ctx does.
func Found(ctx context.Context, port *Port, list map[string]string) (Table, error) {
	f := &Founding{
		identity: port.cfg.Identity, list: list, logger: port.cfg.Logger, changed: make(chan struct{}, 1),
		met: map[string]string{port.cfg.Identity.ID: port.cfg.Identity.Incarnation}, views: map[string]FoundingView{}, complaints: map[string]string{},
	}
	port.mu.Lock()
	port.meeting = f
	port.mu.Unlock()
	for said := ""; ; {
		table, err := f.outcome()
		if err != nil {
			return nil, err
		}
		if table != nil {
			if err := f.identity.SetTable(table); err != nil {
				return nil, err
			}
			return table, nil
		}
		f.askAll(ctx, port)
		if waiting := strings.Join(f.awaited(), ", "); waiting != said && waiting != "" {
			f.logger.Info("the cluster is not founded yet", "waiting_for", waiting)
			said = waiting
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("found the cluster: still waiting for %s: %w", strings.Join(f.awaited(), ", "), context.Cause(ctx))
		case <-f.changed:
		case <-time.After(foundingPause):
		}
	}
}

// askAll says hello to every other listed node and waits for all answers.
func (f *Founding) askAll(ctx context.Context, port *Port) {
	var asked sync.WaitGroup
	for id := range f.list {
		if id == f.identity.ID {
			continue
		}
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, helloTimeout)
			defer cancel()
			conn, _, err := port.dial(ctx, id, PurposeFound)
			if err == nil {
				err = conn.Close()
			}
			if _, refused := errors.AsType[*RefusedError](err); refused {
				f.complain(id, "a node will not found the cluster with this one", "error", err)
			}
		})
	}
	asked.Wait()
}

// meet takes in what another node said.
func (f *Founding) meet(h Hello) {
	if h.Founding == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table != nil || f.fault != nil {
		return
	}
	switch {
	case len(h.Founding.Founded) > 0:
		f.adoptLocked(h)
	case f.list[h.ID] == "":
		f.complainLocked(h.ID, "a node that is not in this node's list wants to found a cluster with it")
	case !slices.Equal(h.Founding.List, f.listed()):
		f.complainLocked(h.ID, "a node was given another list of nodes: give all nodes the same --cluster", "its_list", strings.Join(h.Founding.List, ","), "own_list", strings.Join(f.listed(), ","))
	default:
		delete(f.complaints, h.ID)
		f.heardLocked(h)
	}
	if f.table != nil || f.fault != nil {
		f.signal()
	}
}

// heardLocked takes in what a node with the same list says.
func (f *Founding) heardLocked(h Hello) {
	if f.met[h.ID] == h.Incarnation && maps.Equal(f.views[h.ID].Met, h.Founding.Met) {
		return
	}
	f.met[h.ID] = h.Incarnation
	f.views[h.ID] = *h.Founding
	f.decideLocked()
	f.signal()
}

// signal has the others asked again at once. Only news is a reason: nodes that cannot
// come to an end must not ask each other without a pause.
func (f *Founding) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// complain says in the log what is wrong with a node, if that was not the last that was
// said of it.
func (f *Founding) complain(id, text string, details ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complainLocked(id, text, details...)
}

func (f *Founding) complainLocked(id, text string, details ...any) {
	complaint := fmt.Sprint(append([]any{text}, details...)...)
	if f.complaints[id] == complaint {
		return
	}
	f.complaints[id] = complaint
	f.logger.Warn(text, append([]any{"node", id}, details...)...)
}

// adoptLocked joins a cluster that was founded with this node, which had not
// written that down; any other cluster is a fault.
func (f *Founding) adoptLocked(h Hello) {
	table := h.Founding.Founded
	own, listed := table.Member(f.identity.ID)
	switch {
	case h.Cluster != table.ClusterID():
		f.complainLocked(h.ID, "a node told a table that is not its cluster's")
	case listed && own.Incarnation == f.identity.Incarnation:
		f.table = table
	case listed:
		f.fault = fmt.Errorf("the cluster %s was founded with another data directory of %q, which is not here: put it back (this version cannot replace a node for good)", table.ClusterID(), f.identity.ID)
	default:
		f.fault = fmt.Errorf("node %q is in the cluster %s already, which %q is not a member of: correct --cluster, or give it a directory and a cluster of its own", h.ID, table.ClusterID(), f.identity.ID)
	}
}

// decideLocked founds the cluster if everybody has met everybody.
func (f *Founding) decideLocked() {
	if len(f.met) != len(f.list) {
		return
	}
	for id := range f.list {
		if id != f.identity.ID && !maps.Equal(f.views[id].Met, f.met) {
			return
		}
	}
	f.table = f.foundedTable()
}

func (f *Founding) foundedTable() Table {
	var table Table
	for id, addr := range f.list {
		table = append(table, Member{ID: id, Addr: addr, Incarnation: f.met[id]})
	}
	sortTable(table)
	return table
}

func (f *Founding) outcome() (Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table == nil && f.fault == nil {
		f.decideLocked()
	}
	return f.table, f.fault
}

func (f *Founding) view() *FoundingView {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &FoundingView{List: f.listed(), Met: maps.Clone(f.met)}
}

func (f *Founding) listed() []string {
	var items []string
	for id, addr := range f.list {
		items = append(items, id+"="+addr)
	}
	slices.Sort(items)
	return items
}

// awaited returns the nodes that were not met yet, or have not met all others.
func (f *Founding) awaited() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.list {
		if id != f.identity.ID && !maps.Equal(f.views[id].Met, f.met) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
