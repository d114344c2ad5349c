package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// views is a cluster whose nodes see different things, by endpoint. An endpoint without
// a view answers nothing for as long as it is asked.
type views map[string]holder.Status

func (v views) dial(endpoints []string) (cluster, error) {
	return viewCluster{views: v, endpoints: endpoints}, nil
}

func (v views) run(args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), process{name: "leasenode", args: args, stdout: &stdout, stderr: &stderr, dial: v.dial})
	return outcome{code, stdout.String(), stderr.String()}
}

type viewCluster struct {
	lease.Store
	lease.Watcher
	views     views
	endpoints []string
}

func (c viewCluster) Close() error { return nil }

func (c viewCluster) Status(ctx context.Context) (holder.Status, error) {
	for _, endpoint := range c.endpoints {
		if status, ok := c.views[endpoint]; ok {
			return status, nil
		}
	}
	<-ctx.Done()
	return holder.Status{}, fmt.Errorf("status: %w: %w", lease.ErrUnavailable, context.Cause(ctx))
}

// seen is the cluster of n1 to n3, at h1:1 to h3:1, of which some answer and some can
// serve.
func seen(leader string, answering, healthy []string) holder.Status {
	status := holder.Status{ClusterID: "c", Leader: leader}
	for _, id := range []string{"n1", "n2", "n3"} {
		m := holder.Member{ID: id, PeerAddr: id + ":9", Role: "follower"}
		if slices.Contains(answering, id) {
			m.APIAddr, m.AppliedIndex = "h"+id[1:]+":1", 7
		}
		m.Healthy = slices.Contains(healthy, id)
		status.Members = append(status.Members, m)
	}
	return status
}

// TestStatusPrefersLeader holds that a node that knows no leader does not speak for all,
// and that one that does not answer costs no more than statusTimeout.
func TestStatusPrefersLeader(t *testing.T) {
	all := []string{"n1", "n2", "n3"}
	ignorant := seen("", all, all[1:])
	v := views{"h1:1": ignorant, "h2:1": ignorant, "h4:1": seen("n2", all, all), "h5:1": ignorant}
	start := time.Now()
	for range 20 { // the answers come in any order
		got := v.run("status", "--endpoints", "h1:1,h2:1,h3:1,h4:1,h5:1", "-o", "json")
		if got.code != exitDone || !strings.Contains(got.stdout, `"leader":"n2"`) {
			t.Fatalf("%+v", got)
		}
	}
	if took := time.Since(start); took >= statusTimeout {
		t.Errorf("it took %v to find one that knows a leader", took)
	}
}

func TestStatusWithoutLeader(t *testing.T) {
	all := []string{"n1", "n2", "n3"}
	cases := []struct {
		name string
		seen holder.Status
		want []string
	}{
		{"the others know one", seen("", all, all[1:]), []string{
			"not known: n1 knows no leader, though 2 of 3 nodes do",
			"n1    follower  no leader  7 ", "n2    follower  yes        7 ",
		}},
		{"an election", seen("", all[:2], nil), []string{
			"nobody now: 2 of 3 nodes answer, and nothing can be granted until they have elected one",
			"n2    follower  no leader  7 ", "n3    -         down       - ",
		}},
		{"no majority", seen("", all[:1], nil), []string{"nobody now: 1 of 3 nodes answer, and nothing can be granted until a majority of the nodes is back"}},
	}
	for _, c := range cases {
		got := views{"h1:1": c.seen}.run("status", "--endpoints", "h1:1")
		for _, want := range c.want {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, got.stdout)
			}
		}
	}
}

// TestStatusOfANodeThatCatchesUp holds that a node that has applied nothing yet after its
// start is told from one that knows no leader.
func TestStatusOfANodeThatCatchesUp(t *testing.T) {
	all := []string{"n1", "n2", "n3"}
	behind := func(leader string, healthy []string) string {
		status := seen(leader, all, healthy)
		status.Members[2].AppliedIndex = 0
		return views{"h1:1": status}.run("status", "--endpoints", "h1:1").stdout
	}
	for got, want := range map[string]string{
		behind("n1", all[:2]): "n3    follower  catching up  0 ",
		behind("", nil):       "n3    follower  no leader  0 ",
		views{"h1:1": seen("n1", all, all[:2])}.run("status", "--endpoints", "h1:1").stdout: "n3    follower  no leader  7 ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestBadEndpoints(t *testing.T) {
	for _, bad := range []string{"foo", "http://127.0.0.1:1", "", "h:0", "h:x", ":1", "a:1,,b:1", "a:1, b:1"} {
		for _, command := range []string{"get k", "status", "acquire k --owner o", "bench"} {
			got := invocation{cluster: fakeCluster{}}.run(append(strings.Fields(command), "--endpoints", bad)...)
			check(t, command+" "+bad, got.code, exitUsage)
			if !strings.Contains(got.stderr, "host:port") {
				t.Error(got.stderr)
			}
		}
	}
	check(t, "IPv6", views{"[::1]:1": seen("n1", nil, nil)}.run("status", "--endpoints", "[::1]:1").code, exitDone)
}

// TestStatusWhileFounding holds that a node that is up and waits for others is told from
// one that is not there, whoever is asked.
func TestStatusWhileFounding(t *testing.T) {
	of := func(id string, awaited ...string) holder.Status {
		s := seen("", []string{id}, nil)
		s.ClusterID, s.Awaited = "", awaited
		return s
	}
	const endpoints = "h1:1,h2:1" // all that there are
	got := views{"h1:1": of("n1", "n2", "n3"), "h2:1": of("n2", "n1", "n3")}.run("status", "--endpoints", endpoints).stdout
	for _, want := range []string{"have met; waiting for n3\n", "n1    -     founding ", "n2    -     founding ", "n3    -     awaited "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	got = views{"h1:1": of("n1", "n2"), "h2:1": of("n2", "n1")}.run("status", "--endpoints", endpoints).stdout
	for _, want := range []string{"all of them answer here", "n2    -     founding ", "n3    -     founding "} {
		if !strings.Contains(got, want) {
			t.Errorf("met but not asked: no %q in\n%s", want, got)
		}
	}
	founded := views{"h1:1": of("n1", "n2"), "h2:1": seen("n2", []string{"n1", "n2"}, []string{"n2"})}.run("status", "--endpoints", endpoints).stdout
	if strings.Contains(founded, "founding") || !strings.Contains(founded, "n2") {
		t.Errorf("one knows that it is founded:\n%s", founded)
	}
}
