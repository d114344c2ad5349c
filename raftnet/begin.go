package raftnet

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// Begin writes the first entry of the log, who the members are, if the cluster has
// just been founded. A directory whose log was begun before and is empty now has
// lost it: its node may have voted, and acknowledged entries, that it knows nothing
// of, and is refused.
func Begin(identity *Identity, stores Stores) error {
	exists, err := raft.HasExistingState(stores.Logs, stores.Stable, stores.Snapshots)
	if err != nil {
		return fmt.Errorf("look for an earlier log: %w", err)
	}
	if identity.Joined {
		if !exists {
			return &disk.CorruptError{File: "the log", Place: "its beginning", Problem: fmt.Sprintf("it is empty, though %s says that node %q had one", IdentityFile, identity.ID)}
		}
		return nil
	}
	if err := bootstrap(identity, stores); err != nil {
		return fmt.Errorf("begin the log: %w", err)
	}
	return identity.SetJoined()
}

// bootstrap does what a process before may have begun and not finished: raft sets
// the term first and stores the entry after.
func bootstrap(identity *Identity, stores Stores) error {
	var founders raft.Configuration
	for _, m := range identity.Table {
		founders.Servers = append(founders.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Addr)})
	}
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(identity.ID)
	err := raft.BootstrapCluster(conf, stores.Logs, stores.Stable, stores.Snapshots, nil, founders)
	if !errors.Is(err, raft.ErrCantBootstrap) {
		return err
	}
	last, err := stores.Logs.LastIndex()
	if err != nil || last > 0 {
		return err
	}
	return stores.Logs.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(founders)})
}
