package node

import (
	"errors"
	"testing"

	"github.com/leasenode/leasenode/api/peerpb"
)

func TestJudge(t *testing.T) {
	// Digests at index 64 by node, "" for one that was not told; n1 judges.
	for _, c := range []struct {
		name    string
		voters  int
		digests []string
		stops   bool
	}{
		{"all agree", 3, []string{"a", "a", "a"}, false},
		{"the other differs from a majority", 3, []string{"a", "a", "b"}, false},
		{"this differs from a majority", 3, []string{"b", "a", "a"}, true},
		{"no majority agrees", 3, []string{"a", "b", "c"}, true},
		{"two of three are known and differ", 3, []string{"a", "b", ""}, true},
		{"only this is known", 3, []string{"a", "", ""}, false},
		{"this has told nothing", 3, []string{"", "a", "b"}, false},
		{"one of five differs, two are unknown", 5, []string{"a", "a", "b", "", ""}, false},
		{"this differs from two of five, two are unknown", 5, []string{"b", "a", "a", "", ""}, true},
		{"two against two of five", 5, []string{"a", "a", "b", "b", ""}, true},
		{"no majority can come", 5, []string{"a", "a", "b", "c", "d"}, true},
		{"a minority is known", 5, []string{"a", "b", "", "", ""}, false},
		{"alone", 1, []string{"a"}, false},
	} {
		var states []*peerpb.StateResponse
		for i, d := range c.digests {
			state := &peerpb.StateResponse{Id: string(rune('1' + i))}
			if d != "" {
				state.Digests = []*peerpb.Digest{{Index: 64, Sum: []byte(d)}}
			}
			states = append(states, state)
		}
		err := judge("1", c.voters, states)
		var diverged *DivergedError
		if errors.As(err, &diverged) != c.stops {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	at := func(id string, digests ...*peerpb.Digest) *peerpb.StateResponse {
		return &peerpb.StateResponse{Id: id, Digests: digests}
	}
	d := func(index uint64, sum string) *peerpb.Digest { return &peerpb.Digest{Index: index, Sum: []byte(sum)} }
	if err := judge("1", 3, []*peerpb.StateResponse{at("1", d(64, "a"), d(70, "x")), at("2", d(64, "a"), d(71, "y")), at("3", d(72, "z"))}); err != nil {
		t.Errorf("digests of different indexes are compared: %v", err)
	}
}
