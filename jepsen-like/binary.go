package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/jepsen-like/cluster"
)

// findBinary finds the node program, or builds it, which it says on w, and returns what
// takes that away.
func (c *campaign) findBinary(ctx context.Context, w io.Writer) (release func(), err error) {
	release = func() {}
	if len(c.endpoints) > 0 {
		return release, nil
	}
	given := map[string]string{realNode: c.leasenode, chaosNode: c.chaosnode}[c.node]
	if given != "" {
		if c.binary, err = filepath.Abs(given); err != nil {
			return release, err
		}
		if _, err := os.Stat(c.binary); err != nil {
			return release, usagef("--%s: %v", c.node, err)
		}
		return release, nil
	}
	dir, err := os.MkdirTemp("", "leasenode-chaos-bin-")
	if err != nil {
		return release, err
	}
	release = func() { _ = os.RemoveAll(dir) }
	fmt.Fprintln(w, "jepsen-like: building the node programs; the first time, this takes about a minute")
	binaries, err := cluster.Build(ctx, dir)
	if err != nil {
		release()
		return release, fmt.Errorf("%w\ngive the binary with --%s if there is no Go here", err, c.node)
	}
	c.binary = binaries.Leasenode
	if c.node == chaosNode {
		c.binary = binaries.Chaosnode
	}
	return release, nil
}

// brokenNames are the ways in which nodes can be broken on purpose.
func brokenNames() []string {
	var names []string
	for _, mode := range faulty.Modes() {
		names = append(names, mode.Name)
	}
	return names
}
