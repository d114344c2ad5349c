package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/holder"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the nodes: who leads, who is healthy, whether they agree",
		Long: `Show the nodes of the cluster as the first node that answers sees them. If that one
knows no leader, the other endpoints are asked too, and one that does is preferred.

It needs no leader, and says what it can while nodes are down: the exit code is 0 if
any node could be asked. The digest is a checksum of everything a node keeps; all nodes
must have the same one at the same index.`,
		Example: `  leasenode status
  leasenode status -o json | jq -r .leader`,
		Args: noArguments,
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.withCluster(func(c cluster) error {
				ctx, cancel := a.within(ctx, 0)
				defer cancel()
				view, err := a.look(ctx, c)
				if err != nil {
					return &readError{err}
				}
				return a.show(statusOf(view.Status), func(w io.Writer) { tellStatus(w, view) })
			})
		}),
	}
}

// view is the cluster as a node sees it.
type view struct {
	holder.Status
	// from is the endpoint that answered, "" if it is not known which did.
	from string
}

// look asks the first node that answers. A node that knows no leader may be the one
// that is cut off: then all endpoints are asked at once, and the first answer that has
// a leader is taken.
func (a *app) look(ctx context.Context, c cluster) (view, error) {
	status, err := c.Status(ctx)
	first := view{Status: status}
	if err != nil || status.Leader != "" {
		return first, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	// Room for all: none of those that ask waits for somebody to listen.
	answers := make(chan view, len(a.endpoints))
	var asking sync.WaitGroup
	for _, endpoint := range a.endpoints {
		asking.Go(func() {
			status, err := a.askEndpoint(ctx, endpoint)
			if err == nil && status.Leader != "" {
				cancel()
			}
			if err == nil {
				answers <- view{status, endpoint}
			}
		})
	}
	asking.Wait()
	close(answers)
	for v := range answers {
		if v.Leader != "" {
			return v, nil
		}
		if first.from == "" && len(first.Awaited) == 0 {
			first = v
		}
		first.meet(v)
	}
	return first, nil
}

// meet takes in what other says of the node that it is of. Nodes that found a cluster do
// not ask each other how they are.
func (v *view) meet(other view) {
	if len(v.Awaited) == 0 || len(other.Awaited) == 0 {
		return
	}
	for _, m := range other.Members {
		i := slices.IndexFunc(v.Members, func(o holder.Member) bool { return o.ID == m.ID })
		if i >= 0 && m.APIAddr != "" {
			v.Members[i].APIAddr = m.APIAddr
		}
	}
}

func (a *app) askEndpoint(ctx context.Context, endpoint string) (holder.Status, error) {
	c, err := a.dial([]string{endpoint})
	if err != nil {
		return holder.Status{}, err
	}
	// What was heard was heard, whatever closing says.
	defer func() { _ = c.Close() }()
	return c.Status(ctx)
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

func tellStatus(w io.Writer, v view) {
	s := v.Status
	columns(w, [][]string{
		{"cluster", orDash(s.ClusterID)},
		{"leader", leaderText(v)},
		{"term", strconv.FormatUint(s.Term, 10)},
		{"state", agreement(s)},
	})
	fmt.Fprintln(w)
	rows := [][]string{{"NODE", "ROLE", "HEALTHY", "APPLIED", "DIGEST", "CLIENT ADDRESS", "PEER ADDRESS"}}
	for _, m := range s.Members {
		rows = append(rows, memberRow(s, m))
	}
	columns(w, rows)
}

// leaderText says who leads, or what is known about why nobody does.
func leaderText(v view) string {
	all := len(v.Members)
	healthy, answer := healthyMembers(v.Status), 0
	who := "the node that was asked"
	for _, m := range v.Members {
		if answered(m) {
			answer++
		}
		if v.from != "" && m.APIAddr == v.from {
			who = m.ID
		}
	}
	switch {
	case len(v.Awaited) > 0:
		return "nobody yet: the cluster is founded when all its nodes have met; " + awaitedText(v.Status)
	case v.Leader != "":
		return v.Leader
	case healthy > all/2:
		return fmt.Sprintf("not known: %s knows no leader, though %d of %d nodes do; ask one of those", who, healthy, all)
	case answer > all/2:
		return fmt.Sprintf("nobody now: %d of %d nodes answer, and nothing can be granted until they have elected one", answer, all)
	default:
		return fmt.Sprintf("nobody now: %d of %d nodes answer, and nothing can be granted until a majority of the nodes is back", answer, all)
	}
}

// awaitedText says what a cluster that is being founded waits for. Who is awaited by the
// node that was asked may be there, and wait for others itself.
func awaitedText(s holder.Status) string {
	var missing []string
	for _, m := range s.Members {
		if slices.Contains(s.Awaited, m.ID) && !answered(m) {
			missing = append(missing, m.ID)
		}
	}
	if len(missing) == 0 {
		return "all of them answer here: if it goes on like this, the log of each says why"
	}
	return "waiting for " + strings.Join(missing, ", ")
}

// answered reports whether m did when it was asked: only then is its address known.
func answered(m holder.Member) bool { return m.Healthy || m.APIAddr != "" }

func memberRow(s holder.Status, m holder.Member) []string {
	role, applied := "-", "-"
	if answered(m) && len(s.Awaited) == 0 {
		role, applied = orDash(m.Role), strconv.FormatUint(m.AppliedIndex, 10)
	}
	return []string{m.ID, role, healthText(s, m), applied, orDash(shortDigest(s.Digests[m.ID])), orDash(m.APIAddr), m.PeerAddr}
}

// healthText says whether m is healthy, and if not, why. Where nobody leads, that is why,
// and nobody can catch up.
func healthText(s holder.Status, m holder.Member) string {
	switch {
	case m.Healthy:
		return "yes"
	case len(s.Awaited) > 0 && (answered(m) || !slices.Contains(s.Awaited, m.ID)):
		return "founding"
	case len(s.Awaited) > 0:
		return "awaited"
	case !answered(m):
		return "down"
	case s.Leader != "" && s.Behind(m):
		return "catching up"
	default:
		return "no leader"
	}
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
		if len(s.Digests) == 1 && len(s.Members) > 1 {
			return fmt.Sprintf("1 of %d nodes can be compared at index %d: nothing to compare it with yet", len(s.Members), s.DigestIndex)
		}
		return fmt.Sprintf("%d of %d nodes compared at index %d: the same", len(s.Digests), len(s.Members), s.DigestIndex)
	default:
		return fmt.Sprintf("THE NODES DIFFER at index %d: see the digests", s.DigestIndex)
	}
}
