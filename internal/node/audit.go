package node

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/peerpb"
)

// auditInterval is how often a node compares its state's digest with the others'.
const auditInterval = time.Second

// DivergedError says that this node's state differs from that of the others at the
// same log index. Such a node must not go on: what it grants could differ too.
type DivergedError struct {
	Index uint64
	// Digests are by node, in hex.
	Digests map[string]string
	// Own is this node's id.
	Own string
}

func (e *DivergedError) Error() string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(e.Digests)) {
		parts = append(parts, id+"="+e.Digests[id])
	}
	return fmt.Sprintf("the state of node %q is not that of a majority at index %d (%s): it stops, since it could grant what others have granted; keep its directory for examination, and start it anew once the cause is known", e.Own, e.Index, strings.Join(parts, " "))
}

// auditLoop compares digests until ctx ends, and returns the first divergence.
func auditLoop(ctx context.Context, n api.Node) error {
	ticker := time.NewTicker(auditInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var voters []api.Member
		for _, m := range n.Consensus.Members() {
			if m.Role == api.RoleVoter {
				voters = append(voters, m)
			}
		}
		if err := judge(n.ID, len(voters), n.Survey(ctx, voters)); err != nil {
			return err
		}
	}
}

// judge returns a [*DivergedError] if own has to stop. It looks at each log index of
// which own and enough others to make a majority have told a digest: there, own's
// digest must be the one that most have, and one that a majority can still have.
func judge(own string, voters int, states []*peerpb.StateResponse) error {
	at := map[uint64]map[string][]byte{} // index, node, digest
	for _, state := range states {
		for _, digest := range state.GetDigests() {
			if at[digest.GetIndex()] == nil {
				at[digest.GetIndex()] = map[string][]byte{}
			}
			at[digest.GetIndex()][state.GetId()] = digest.GetSum()
		}
	}
	majority := voters/2 + 1
	for _, index := range slices.Sorted(maps.Keys(at)) {
		digests := at[index]
		if digests[own] == nil || len(digests) < majority {
			continue
		}
		with, against := 0, map[string]int{}
		for _, sum := range digests {
			if bytes.Equal(sum, digests[own]) {
				with++
			} else {
				against[string(sum)]++
			}
		}
		rival := 0
		for _, count := range against {
			rival = max(rival, count)
		}
		if unknown := voters - len(digests); with <= rival || with+unknown < majority {
			return diverged(own, index, digests)
		}
	}
	return nil
}

func diverged(own string, index uint64, digests map[string][]byte) error {
	e := &DivergedError{Index: index, Digests: map[string]string{}, Own: own}
	for id, sum := range digests {
		e.Digests[id] = hex.EncodeToString(sum)
	}
	return e
}
