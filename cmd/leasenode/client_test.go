package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// TestShapes fixes what -o json prints, byte for byte: scripts rely on it.
func TestShapes(t *testing.T) {
	store, clock := stillStore()
	i := invocation{cluster: fakeCluster{Store: store, status: twoOfThree()}}
	const until = "1893553455678" // 10 s after the clock's start
	steps := []struct {
		args string
		want string
	}{
		{"get k", `{"key":"k","owner":"","epoch":0,"lease_until_ms":0,"remaining_ms":0,"forgotten_at_epoch":0,"attributes":{}}`},
		{"list", `{"leases":[]}`},
		{"history", `{"entries":[]}`},
		{"acquire k --owner <o> --ttl 10s --attr addr=h:1 --attr v=a,b=c", `{"key":"k","owner":"<o>","epoch":1,"lease_until_ms":` + until + `,"remaining_ms":10000,"forgotten_at_epoch":0,"attributes":{"addr":"h:1","v":"a,b=c"}}`},
		{"renew k --owner <o> --epoch 1 --ttl 20s", `{"key":"k","owner":"<o>","epoch":1,"lease_until_ms":1893553465678,"remaining_ms":20000,"forgotten_at_epoch":0,"attributes":{"addr":"h:1","v":"a,b=c"}}`},
		{"forget k --owner <o> --epoch 1", `{"key":"k","owner":"<o>","epoch":1,"lease_until_ms":1893553465678,"remaining_ms":20000,"forgotten_at_epoch":1,"attributes":{"addr":"h:1","v":"a,b=c"}}`},
		{"list k --held", `{"leases":[{"key":"k","owner":"<o>","epoch":1,"lease_until_ms":1893553465678,"remaining_ms":20000,"forgotten_at_epoch":1,"attributes":{"addr":"h:1","v":"a,b=c"}}]}`},
		{"release k --owner <o> --epoch 1", `{"key":"k","owner":"<o>","epoch":1,"lease_until_ms":1893553445678,"remaining_ms":0,"forgotten_at_epoch":1,"attributes":{"addr":"h:1","v":"a,b=c"}}`},
		{"status", `{"cluster_id":"c1","leader":"","term":7,"members":[` +
			`{"id":"n1","peer_addr":"h:1","api_addr":"h:2","role":"follower","healthy":true,"applied_index":12},` +
			`{"id":"n2","peer_addr":"h:3","api_addr":"h:4","role":"follower","healthy":true,"applied_index":11},` +
			`{"id":"n3","peer_addr":"h:5","api_addr":"","role":"follower","healthy":false,"applied_index":0}],` +
			`"digest_index":11,"digests":{"n1":"aa","n2":"aa"},"now_ms":5}`},
	}
	for _, step := range steps {
		got := i.run(append(strings.Fields(step.args), "-o", "json")...)
		check(t, step.args, got, outcome{0, step.want + "\n", ""})
	}
	clock.Advance(time.Second)
	got := i.run("history", "k", "-o", "json")
	first := `{"entries":[{"index":1,"op":"acquire","key":"k","owner":"<o>","epoch":1,"at_ms":1893553445678,"wall_time":"2030-01-02T03:04:05.678Z"},`
	if !strings.HasPrefix(got.stdout, first) || strings.Count(got.stdout, `"op"`) != 4 {
		t.Errorf("history:\n got %s\nwant %s and three more", got.stdout, first)
	}
}

func twoOfThree() holder.Status {
	return holder.Status{
		ClusterID: "c1", Term: 7, DigestIndex: 11, Now: lease.InstantOfMillis(5),
		Digests: map[string]string{"n1": "aa", "n2": "aa"},
		Members: []holder.Member{
			{ID: "n1", PeerAddr: "h:1", APIAddr: "h:2", Role: "follower", Healthy: true, AppliedIndex: 12},
			{ID: "n2", PeerAddr: "h:3", APIAddr: "h:4", Role: "follower", Healthy: true, AppliedIndex: 11},
			{ID: "n3", PeerAddr: "h:5", Role: "follower"},
		},
	}
}

// TestEmptyStatus holds that a node that knows nothing yet has no null in its status.
func TestEmptyStatus(t *testing.T) {
	got := invocation{cluster: fakeCluster{}}.run("status", "-o", "json")
	check(t, "status", got.stdout, `{"cluster_id":"","leader":"","term":0,"members":[],"digest_index":0,"digests":{},"now_ms":0}`+"\n")
}

func TestFailures(t *testing.T) {
	store, clock := stillStore()
	faulty := leasetest.NewFaulty(store)
	i := invocation{cluster: fakeCluster{Store: faulty, statusErr: lease.ErrUnavailable}}
	if got := i.run("acquire", "k", "--owner", "o", "--request-id", "hush"); got.code != 0 || strings.Contains(got.stdout, "hush") {
		t.Fatalf("acquire: %+v", got)
	}
	record := `{"key":"k","owner":"o","epoch":1,"lease_until_ms":1893553455678,"remaining_ms":9000,"forgotten_at_epoch":0,"attributes":{}}`
	clock.Advance(time.Second)
	faulty.FailAll(leasetest.Release, leasetest.Fault{Err: errors.New("first\nsecond")})
	faulty.FailAll(leasetest.Get, leasetest.Fault{Err: fmt.Errorf("get: %w", lease.ErrUnavailable)})
	faulty.FailAll(leasetest.Forget, leasetest.Fault{Err: context.Canceled})
	faulty.FailAll(leasetest.List, leasetest.Fault{Err: &lease.ExhaustedError{Resource: "requests", Limit: 1}})
	cases := []struct {
		args   string
		code   int
		reason string
		record string
	}{
		{"acquire k --owner p", 3, "LEASE_HELD", record},
		{"acquire k --owner o", 3, "LEASE_HELD", record},
		{"renew k --owner p --epoch 1", 4, "LEASE_LOST", record},
		{"get k", 5, "UNAVAILABLE", "null"},
		{"status", 5, "UNAVAILABLE", "null"},
		{"forget k --owner o --epoch 1", 5, "OUTCOME_UNKNOWN", "null"},
		{"release k --owner o --epoch 1", 1, "FAILED", "null"},
		{"list", 1, "EXHAUSTED", "null"},
		{"acquire k --owner o --ttl 1ms", 2, "INVALID", "null"},
		{"acquire k --owner o --wait -1s", 2, "INVALID", "null"},
		{"acquire k", 2, "INVALID", "null"},
		{"acquire k --owner o --attr x", 2, "INVALID", "null"},
		{"acquire k --owner o --attr x=1 --attr x=2", 2, "INVALID", "null"},
		{"renew k --owner o --epoch 0", 2, "INVALID", "null"},
		{"renew k --owner o --epoch -1", 2, "INVALID", "null"},
		{"get", 2, "INVALID", "null"},
		{"get k --timeout 0s", 2, "INVALID", "null"},
		{"get k --bogus", 2, "INVALID", "null"},
		{"bogus", 2, "INVALID", "null"},
		{"bench --op acquire,fly", 2, "INVALID", "null"},
		{"bench --clients 0", 2, "INVALID", "null"},
		{"bench --count 1 --duration 1s", 2, "INVALID", "null"},
		{"dev --nodes 4", 2, "INVALID", "null"},
		{"dev --nodes 11", 2, "INVALID", "null"},
		{"dev --api-port 7100", 2, "INVALID", "null"},
		{"dev --api-port 65535", 2, "INVALID", "null"},
		{"serve --id N --data-dir d --peer-addr h:1 --api-addr h:2 --cluster n1=h:1", 2, "INVALID", "null"},
	}
	for _, c := range cases {
		got := i.run(append(strings.Fields(c.args), "-o", "json")...)
		check(t, c.args+": code", got.code, c.code)
		if !strings.HasPrefix(got.stdout, `{"error":{"reason":"`+c.reason+`","message":"`) || !strings.HasSuffix(got.stdout, `,"record":`+c.record+"}}\n") {
			t.Errorf("%s: %s", c.args, got.stdout)
		}
		check(t, c.args+": lines of stderr", strings.Count(got.stderr, "\n"), 1)
		if table := i.run(strings.Fields(c.args)...); table.stdout != "" || table.stderr != got.stderr || table.code != c.code {
			t.Errorf("%s without -o json: %+v", c.args, table)
		}
	}
}

// TestKeyOfArgument holds that an empty key is refused, and not taken for "all keys".
func TestKeyOfArgument(t *testing.T) {
	store, _ := stillStore()
	i := invocation{cluster: fakeCluster{Store: store}}
	for _, command := range []string{"history", "get"} {
		check(t, command, i.run(command, "").code, exitUsage)
	}
}

func TestTables(t *testing.T) {
	store, clock := stillStore()
	i := invocation{cluster: fakeCluster{Store: store, status: twoOfThree()}}
	check(t, "never granted", i.run("get", "k").stdout, "k was never granted\n")
	check(t, "no keys", i.run("list").stdout, "no such key\n")
	check(t, "no history", i.run("history").stdout, "nothing was granted\n")
	check(t, "acquire", i.run("acquire", "k", "--owner", "the owner", "--ttl", "12300ms").stdout, `k is yours: epoch 1, 12.3s left

  keep it     leasenode renew k --owner 'the owner' --epoch 1 --ttl 12.3s
  give it up  leasenode release k --owner 'the owner' --epoch 1
`)
	clock.Advance(300 * time.Millisecond)
	check(t, "get", i.run("get", "k").stdout, `key    k
state  held, 12s left
owner  "the owner"
epoch  1
`)
	check(t, "renew", i.run("renew", "k", "--owner", "the owner", "--epoch", "1", "--ttl", "1m").stdout, "k is still yours: epoch 1, 1m left\n")
	check(t, "forget", i.run("forget", "k", "--owner", "the owner", "--epoch", "1").stdout, "k: whatever was written up to epoch 1 counts as erased\n")
	check(t, "release", i.run("release", "k", "--owner", "the owner", "--epoch", "1").stdout, "k is given back: epoch 1 was released\n")
	check(t, "release again", i.run("release", "k", "--owner", "the owner", "--epoch", "1").stdout, "k was free already: epoch 1 was over\n")
	check(t, "get after the end", i.run("get", "k").stdout, `key         k
state       free
last owner  "the owner"
epoch       1
forgotten   up to epoch 1
`)
	check(t, "list", i.run("list").stdout, `KEY  STATE  OWNER        EPOCH  FORGOTTEN  ATTRIBUTES
k    free   "the owner"  1      1
`)
	check(t, "status", i.run("status").stdout, `cluster  c1
leader   not known: the node that was asked knows no leader, though 2 of 3 nodes do; ask one of those
term     7
state    2 of 3 nodes compared at index 11: the same

NODE  ROLE      HEALTHY  APPLIED  DIGEST  CLIENT ADDRESS  PEER ADDRESS
n1    follower  yes      12       aa      h:2             h:1
n2    follower  yes      11       aa      h:4             h:3
n3    -         down     -        -       -               h:5
`)
}

func TestStatusShowsDisagreement(t *testing.T) {
	status := twoOfThree()
	status.Digests["n2"] = "bb"
	got := invocation{cluster: fakeCluster{status: status}}.run("status")
	if !strings.Contains(got.stdout, "THE NODES DIFFER at index 11") {
		t.Error(got.stdout)
	}
}

func TestStatusDoesNotCallOneNodeTheSame(t *testing.T) {
	status := twoOfThree()
	delete(status.Digests, "n2")
	got := invocation{cluster: fakeCluster{status: status}}.run("status")
	if strings.Contains(got.stdout, "the same") || !strings.Contains(got.stdout, "1 of 3 nodes can be compared") {
		t.Error(got.stdout)
	}
}

// TestSuggestedEndpoints holds that suggested commands go to the cluster that was
// asked.
func TestSuggestedEndpoints(t *testing.T) {
	store, _ := stillStore()
	i := invocation{cluster: fakeCluster{Store: store}}
	got := i.run("acquire", "--owner", "o", "--endpoints", "h:1,h:2", "--", "-k")
	if want := "leasenode release --owner o --epoch 1 --endpoints h:1,h:2 -- -k\n"; !strings.HasSuffix(got.stdout, want) {
		t.Error(got.stdout)
	}
}

// TestPages holds that list and history show everything, however many pages it has.
func TestPages(t *testing.T) {
	store, _ := stillStore()
	const keys = lease.MaxPageSize + 1
	for k := range keys {
		req := lease.AcquireRequest{Key: fmt.Sprintf("k%d", k), Owner: "o", TTL: time.Second}
		if _, err := store.Acquire(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	i := invocation{cluster: fakeCluster{Store: store}}
	for _, command := range []string{"list", "history"} {
		got := i.run(command, "-o", "json")
		check(t, command, strings.Count(got.stdout, `"key"`), keys)
	}
}

func TestStale(t *testing.T) {
	for _, command := range []string{"get k", "list", "history k"} {
		seen := &consistencyStore{}
		i := invocation{cluster: fakeCluster{Store: seen}}
		i.run(strings.Fields(command)...)
		i.run(strings.Fields(command + " --stale")...)
		check(t, command, fmt.Sprint(seen.got), fmt.Sprint([]lease.Consistency{lease.Linearizable, lease.Stale}))
	}
}

type consistencyStore struct {
	lease.Store
	got []lease.Consistency
}

func (s *consistencyStore) Get(_ context.Context, req lease.GetRequest) (lease.Answer, error) {
	s.got = append(s.got, req.Consistency)
	return lease.Answer{Record: lease.Record{Key: req.Key}}, nil
}

func (s *consistencyStore) List(_ context.Context, req lease.ListRequest) (lease.ListPage, error) {
	s.got = append(s.got, req.Consistency)
	return lease.ListPage{}, nil
}

func (s *consistencyStore) History(_ context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	s.got = append(s.got, req.Consistency)
	return lease.HistoryPage{}, nil
}
