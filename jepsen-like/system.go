package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasenode/leasenode/jepsen-like/cluster"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// system is a cluster as a run sees it.
type system interface {
	nodeTarget
	// endpoints are the client addresses, in the order of the nodes.
	endpoints() []string
	close() error
}

// nodeTarget is the part of a [nemesis.Target] that is about nodes.
type nodeTarget interface {
	Nodes() int
	Leader(ctx context.Context) (node int, ok bool)
	SetLink(from, to int, state nemesis.LinkState)
	SetClientLink(node int, state nemesis.LinkState)
	Kill(node int) error
	Start(node int) error
	Terminate(node int) error
	Stop(node int) error
	Continue(node int) error
	SetClock(node int, clock nemesis.ClockState) error
	SetDisk(node int, disk nemesis.DiskState) error
}

// target is a cluster with its holders.
type target struct {
	nodeTarget
	*programs
}

var _ nemesis.Target = target{}

// started is a cluster of processes of this run.
type started struct{ *cluster.Cluster }

func (s started) endpoints() []string { return s.Endpoints() }
func (s started) close() error        { return s.Close() }

// open returns the cluster of the run, started unless it runs anyway.
func (t *trial) open(ctx context.Context) (system, error) {
	if len(t.campaign.endpoints) > 0 {
		return attached(t.campaign.endpoints), nil
	}
	c, err := cluster.Open(ctx, cluster.Config{
		Dir: filepath.Join(t.dir, "nodes"), Nodes: t.campaign.nodes, Program: cluster.Program(t.node), Binary: t.binary,
		Broken: t.broken, LogStores: t.campaign.logStores(), Mount: t.mount, OnEvent: t.tally.AddEvent, Now: t.now,
	})
	if err != nil {
		return nil, err
	}
	kinds := t.schedule.Kinds()
	if possible := c.Controls().Possible(kinds); len(possible) < len(kinds) {
		return nil, errors.Join(fmt.Errorf("of the faults %v only %v can be done to these nodes here", kinds, possible), c.Close())
	}
	return started{c}, nil
}

// attached is a cluster that runs anyway: nothing is done to it.
type attached []string

func (a attached) endpoints() []string { return a }
func (a attached) close() error        { return nil }
func (a attached) Nodes() int          { return len(a) }

func (a attached) Leader(context.Context) (int, bool) { return 0, false }

var errAttached = errors.New("nothing is done to a cluster that was not started here")

func (a attached) SetLink(int, int, nemesis.LinkState)    {}
func (a attached) SetClientLink(int, nemesis.LinkState)   {}
func (a attached) Start(int) error                        { return nil } // it runs
func (a attached) Kill(int) error                         { return errAttached }
func (a attached) Terminate(int) error                    { return errAttached }
func (a attached) Stop(int) error                         { return errAttached }
func (a attached) Continue(int) error                     { return errAttached }
func (a attached) SetClock(int, nemesis.ClockState) error { return errAttached }
func (a attached) SetDisk(int, nemesis.DiskState) error   { return errAttached }

// keysOf returns the keys of the holder of that number, counted from 0: all that there
// are for the harness's own, one for an instance of the program to judge.
func (t *trial) keysOf(n int) []string {
	if len(t.campaign.program) > 0 {
		return []string{fmt.Sprintf("%sw%d", t.prefix, n%t.workloadKeys+1)}
	}
	var keys []string
	for key := range holderKeys {
		keys = append(keys, fmt.Sprintf("%sh%d", t.prefix, key+1))
	}
	return keys
}

func holderName(n int) string { return fmt.Sprintf("h%d", n+1) }

// program returns the holder of that number.
func (t *trial) program(n int, endpoints []string) (program, error) {
	p := program{name: holderName(n), log: filepath.Join(t.dir, "holders", holderName(n)+".log")}
	addrs, resource := strings.Join(endpoints, ","), filepath.Join(t.dir, "resource")
	if len(t.campaign.program) > 0 {
		p.args = t.campaign.program
		p.env = []string{
			"LEASENODE_ENDPOINTS=" + addrs, "LEASENODE_KEY=" + t.keysOf(n)[0], "LEASENODE_HOLDER=" + p.name,
			"LEASENODE_RESOURCE=" + resource,
		}
		return p, nil
	}
	self, err := os.Executable()
	if err != nil {
		return p, fmt.Errorf("find the holder process, which is this program: %w", err)
	}
	p.args = []string{
		self, "hold", "--name", p.name, "--endpoints", addrs, "--resource", resource, "--seed", fmt.Sprint(t.seed + uint64(n)<<16),
	}
	for _, key := range t.keysOf(n) {
		p.args = append(p.args, "--key", key)
	}
	return p, nil
}
