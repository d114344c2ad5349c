package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/holder"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the nodes: who leads, who is healthy, whether they agree",
		Long: `Show the nodes of the cluster as the first node that answers sees them.

It needs no leader, and says what it can while nodes are down: the exit code is 0 if
any node could be asked. The digest is a checksum of everything a node keeps; all nodes
must have the same one at the same index.`,
		Example: `  leasenode status
  leasenode status -o json | jq -r .leader`,
		Args: cobra.NoArgs,
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.withCluster(func(c cluster) error {
				ctx, cancel := context.WithTimeout(ctx, a.timeout)
				defer cancel()
				status, err := c.Status(ctx)
				if err != nil {
					return err
				}
				return a.show(statusOf(status), func(w io.Writer) { tellStatus(w, status) })
			})
		}),
	}
}

type statusJSON struct {
	ClusterID   string            `json:"cluster_id"`
	Leader      string            `json:"leader"`
	Term        uint64            `json:"term"`
	Members     []memberJSON      `json:"members"`
	DigestIndex uint64            `json:"digest_index"`
	Digests     map[string]string `json:"digests"`
	NowMS       int64             `json:"now_ms"`
	// Awaited is there while the cluster is being founded.
	Awaited []string `json:"awaited,omitempty"`
}

type memberJSON struct {
	ID           string `json:"id"`
	PeerAddr     string `json:"peer_addr"`
	APIAddr      string `json:"api_addr"`
	Role         string `json:"role"`
	Healthy      bool   `json:"healthy"`
	AppliedIndex uint64 `json:"applied_index"`
}

func statusOf(s holder.Status) statusJSON {
	result := statusJSON{
		ClusterID: s.ClusterID, Leader: s.Leader, Term: s.Term, Members: []memberJSON{},
		DigestIndex: s.DigestIndex, Digests: map[string]string{}, NowMS: s.Now.Millis(), Awaited: s.Awaited,
	}
	for _, m := range s.Members {
		result.Members = append(result.Members, memberJSON{
			ID: m.ID, PeerAddr: m.PeerAddr, APIAddr: m.APIAddr,
			Role: m.Role, Healthy: m.Healthy, AppliedIndex: m.AppliedIndex,
		})
	}
	for id, digest := range s.Digests {
		result.Digests[id] = digest
	}
	return result
}

func tellStatus(w io.Writer, s holder.Status) {
	leader := s.Leader
	switch {
	case len(s.Awaited) > 0:
		leader = "nobody yet: the cluster is founded when all its nodes have met; waiting for " + strings.Join(s.Awaited, ", ")
	case leader == "":
		leader = "nobody now: nothing can be granted until a majority of the nodes is back"
	}
	columns(w, [][]string{
		{"cluster", orDash(s.ClusterID)},
		{"leader", leader},
		{"term", strconv.FormatUint(s.Term, 10)},
		{"state", agreement(s)},
	})
	fmt.Fprintln(w)
	rows := [][]string{{"NODE", "ROLE", "HEALTHY", "APPLIED", "DIGEST", "CLIENT ADDRESS", "PEER ADDRESS"}}
	for _, m := range s.Members {
		rows = append(rows, memberRow(m, s.Digests[m.ID]))
	}
	columns(w, rows)
}

func memberRow(m holder.Member, digest string) []string {
	healthy, applied := "no", "-"
	if m.Healthy {
		healthy, applied = "yes", strconv.FormatUint(m.AppliedIndex, 10)
	}
	return []string{m.ID, orDash(m.Role), healthy, applied, orDash(shortDigest(digest)), orDash(m.APIAddr), m.PeerAddr}
}

// shortDigest is as much of a digest as a person compares.
func shortDigest(digest string) string { return digest[:min(len(digest), 12)] }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// agreement says whether the nodes keep the same state, in words.
func agreement(s holder.Status) string {
	distinct := map[string]bool{}
	for _, digest := range s.Digests {
		distinct[digest] = true
	}
	switch len(distinct) {
	case 0:
		return "no digests to compare"
	case 1:
		return fmt.Sprintf("%d of %d nodes compared at index %d: the same", len(s.Digests), len(s.Members), s.DigestIndex)
	default:
		return fmt.Sprintf("THE NODES DIFFER at index %d: see the digests", s.DigestIndex)
	}
}
