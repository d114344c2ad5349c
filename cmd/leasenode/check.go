package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/internal/node"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR...",
		Short: "Say what is in a stopped node's directory and what is wrong with it",
		Long: `Say what is in the data directory of a stopped node, and what is wrong with it: who the
node is, its vote, its log, its snapshots, and the state that a start would make of
them, with every record held against the rules. DIR can also be a folder of such
directories, as "leasenode dev" has it. Several nodes are compared at the latest log
entry that all of them have.

Nothing in DIR is changed, and a node cannot be started there meanwhile. The log is
copied, and the state made, in a folder for temporary files ($TMPDIR), which is removed.
The last entries of a log may never have been committed, and the state has them all the
same. It may also lack what the cluster did without this node.

With -o json the result is {"ok","nodes","comparison","problems"}. A node is
{"dir","id","identity","vote","log","snapshots","unfinished_snapshots","state"}, with
null for what is not there; a problem is {"kind","dir","part","file","place","index",
"message"}, and its kind is damaged, differs or newer: written by a newer leasenode. The
documentation on running a cluster has every field.

Exit codes: 0 all is well, as far as it could be compared, which the last line says; 13
something is damaged or differs; 1 it could not be checked: the directory is in use, is
none of a node, cannot be read, or needs a newer leasenode; 2 usage.`,
		Example: `  leasenode check /var/lib/leasenode
  leasenode check leasenode-data
  leasenode check n1-copy n2-copy n3-copy -o json | jq '.problems[].message'`,
		Args:              arguments{what: "DIR", min: 1}.check,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE:              a.action(a.check),
	}
}

// check ends with an error that is silent, and has the exit code, if the result that it
// has shown says that something is wrong.
func (a *app) check(ctx context.Context, args []string) error {
	result, err := checkDirs(ctx, args)
	if err != nil {
		return err
	}
	if err := a.show(result, func(w io.Writer) { tellCheck(w, result) }); err != nil {
		return err
	}
	if result.OK {
		return nil
	}
	for _, p := range result.Problems {
		if p.Kind != problemNewer {
			return &exitError{code: node.ExitDamaged}
		}
	}
	return &exitError{code: exitFailed}
}

// checkDirs checks the nodes in the folders. The error says that they could not be
// read; what is wrong in them is in the result.
func checkDirs(ctx context.Context, args []string) (result checkJSON, err error) {
	dirs, err := nodeDirs(args)
	if err != nil {
		return checkJSON{}, err
	}
	unlock, err := holdAll(dirs)
	if err != nil {
		return checkJSON{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	scratch, err := os.MkdirTemp("", "leasenode-check-")
	if err != nil {
		return checkJSON{}, fmt.Errorf("make a folder for what is read: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var nodes []*checkedNode
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.close())
		}
	}()
	for i, dir := range dirs {
		n, err := inspectNode(ctx, dir, fmt.Sprintf("%s/%d", scratch, i))
		if err != nil {
			return checkJSON{}, fmt.Errorf("check %s: %w", dir, err)
		}
		nodes = append(nodes, n)
	}
	return judgeNodes(ctx, nodes)
}

// judgeNodes compares the nodes, and makes the state of each.
func judgeNodes(ctx context.Context, nodes []*checkedNode) (checkJSON, error) {
	if err := anythingIn(nodes); err != nil {
		return checkJSON{}, err
	}
	c, err := compareLogs(ctx, nodes)
	if err != nil {
		return checkJSON{}, err
	}
	for _, n := range nodes {
		if err := n.makeState(ctx, c.indexFor(n)); err != nil {
			return checkJSON{}, fmt.Errorf("make the state of %s: %w", n.Dir, err)
		}
	}
	compareIdentities(nodes)
	c.compareStates()
	return resultOf(nodes, c), nil
}

// anythingIn returns an error unless a node was found.
func anythingIn(nodes []*checkedNode) error {
	for _, n := range nodes {
		if !n.empty {
			return nil
		}
	}
	return fmt.Errorf("there is nothing of a node in %s", nodes[0].Dir)
}
