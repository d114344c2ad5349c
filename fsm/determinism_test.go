package fsm_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
	"pgregory.net/rapid"
)

// TestBatchingAndSnapshotsLeaveNoTrace applies one log an entry at a time, and
// again in batches as they come, with a snapshot installed on another machine on
// the way.
func TestBatchingAndSnapshotsLeaveNoTrace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		logs, _ := drawLog(rt)
		one, other := newMachine(t), newMachine(t)
		var want, got []any
		for _, log := range logs {
			want = append(want, one.Apply(log))
		}
		moves := rapid.IntRange(0, len(logs)).Draw(rt, "snapshot after")
		for len(got) < len(logs) {
			n := rapid.IntRange(1, len(logs)-len(got)).Draw(rt, "batch")
			got = append(got, other.ApplyBatch(logs[len(got):len(got)+n])...)
			if moves >= 0 && len(got) >= moves {
				moves = -1
				before := other
				other = before.restored()
				if !reflect.DeepEqual(other.lastDigest(), before.lastDigest()) {
					rt.Fatal("the digest did not survive the snapshot")
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %v, want %v", got, want)
		}
		compareMachines(rt, one, other)
	})
}

func compareMachines(t *rapid.T, one, other *machine) {
	if !bytes.Equal(one.snapshot(), other.snapshot()) {
		t.Fatal("the snapshots differ")
	}
	for _, key := range []string{"", "a", "a/", "b", "c"} {
		if got, want := other.history(key, 2), one.history(key, 1000); !reflect.DeepEqual(got, want) {
			t.Fatalf("history of %q: got %v, want %v", key, got, want)
		}
	}
	sums := map[uint64]string{}
	for _, d := range append(one.Digests(), other.Digests()...) {
		sum := fmt.Sprintf("%x", d.Sum)
		if sums[d.Index] != "" && sums[d.Index] != sum {
			t.Fatalf("the digests at %d differ", d.Index)
		}
		sums[d.Index] = sum
	}
	if one.lastDigest() != other.lastDigest() {
		t.Fatal("the last digests differ")
	}
}

func TestDigestsDoNotDependOnBatching(t *testing.T) {
	one, other := openMachine(t, fsm.Settings{}), openMachine(t, fsm.Settings{})
	var logs []*raft.Log
	for one.index < 300 {
		one.since += time.Millisecond
		logs = append(logs, one.entry(batch(one.stamp(), acquire("k", "x", "", lease.MinTTL), renew("k", "x", one.index/100, time.Second))))
	}
	want := map[uint64]fsm.Digest{}
	for _, log := range logs {
		one.Apply(log)
		want[log.Index] = one.lastDigest()
	}
	for len(logs) > 0 {
		n := min(130, len(logs))
		other.ApplyBatch(logs[:n])
		logs = logs[n:]
	}
	got := other.Digests()
	if len(got) < 16 || !slices.Equal(got, one.Digests()) {
		t.Errorf("got %d digests, want those of %d", len(got), len(one.Digests()))
	}
	for _, d := range got {
		if d != want[d.Index] {
			t.Errorf("the digest at %d is %x, and was %x when it was the last one", d.Index, d.Sum, want[d.Index].Sum)
		}
	}
}

func TestDigestsTellStatesApart(t *testing.T) {
	seen := map[fsm.Digest]string{}
	for name, act := range map[string]func(m *machine){
		"nothing":    func(*machine) {},
		"later":      func(m *machine) { m.since = time.Second; m.do() },
		"a key":      func(m *machine) { m.must(acquire("k", "x", "", time.Second)) },
		"owner":      func(m *machine) { m.must(acquire("k", "y", "", time.Second)) },
		"request id": func(m *machine) { m.must(acquire("k", "x", "r", time.Second)) },
		"end":        func(m *machine) { m.must(acquire("k", "x", "", time.Minute)) },
		"attributes": func(m *machine) {
			with := acquire("k", "x", "", time.Second)
			with.Attributes = map[string]string{"a": ""}
			m.must(with)
		},
		"another index": func(m *machine) { m.index++ },
	} {
		m := openMachine(t, fsm.Settings{})
		act(m)
		for m.index < 5 {
			m.do()
		}
		if name == "another index" {
			m.do()
		}
		digest := m.lastDigest()
		digest.Index = 0
		if other, ok := seen[digest]; ok {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[digest] = name
	}
	m := openMachine(t, fsm.Settings{MaxKeys: 1})
	for m.index < 5 {
		m.do()
	}
	digest := m.lastDigest()
	digest.Index = 0
	if other, ok := seen[digest]; ok {
		t.Errorf("other settings and %q have one digest", other)
	}
}

func TestListingOfAllOperationsIsBounded(t *testing.T) {
	m := openMachine(t, fsm.Settings{HistoryGrants: 5, HistoryRenewals: 50, HistoryOperations: 3})
	m.must(acquire("k", "x", "", time.Second))
	for range 20 {
		m.since += time.Millisecond
		m.must(renew("k", "x", 1, time.Second))
	}
	m.do(acquire("a", "x", "", time.Second), acquire("b", "x", "", time.Second))
	var got []string
	for _, e := range m.history("", 2) {
		got = append(got, fmt.Sprintf("%d %v %s", e.Index, e.Op, e.Key))
	}
	want := []string{"2 acquire k", "20 renew k", "21 renew k", "22 renew k", "23 acquire a", "23 acquire b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// Entries go as a whole, and the latest stays even if it is too long alone.
	m.do(acquire("c", "x", "", time.Second), acquire("d", "x", "", time.Second), acquire("e", "x", "", time.Second), acquire("f", "x", "", time.Second))
	var keys string
	for _, e := range m.history("", 1000)[3:] {
		keys += e.Key
	}
	if keys != "cdef" {
		t.Errorf("got %q", keys)
	}
}

func TestAnEpochAtItsLargestIsNeverGrantedAgain(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	if err := m.Plant(lease.Record{Key: "k", Owner: "x", Epoch: lease.MaxEpoch - 1}, 1); err != nil {
		t.Fatal(err)
	}
	m = m.restored()
	if a := m.must(acquire("k", "x", "r1", time.Second)); a.Record.Epoch != lease.MaxEpoch {
		t.Fatalf("epoch %d", a.Record.Epoch)
	}
	m.must(renew("k", "x", lease.MaxEpoch, 2*time.Second))
	if verdict, _ := verdictOf(m.do(acquire("k", "y", "r2", time.Second))[0]); verdict != "held" {
		t.Errorf("while it is held: %s", verdict)
	}
	m.must(release("k", "x", lease.MaxEpoch))
	for range 2 {
		got := m.do(acquire("k", "y", "r2", time.Second))[0].Err
		if want := (&lease.ExhaustedError{Resource: "epochs", Limit: lease.MaxEpoch, Key: "k"}); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		m = m.restored()
	}
	if r := m.get("k").Record; r.Epoch != lease.MaxEpoch || r.Owner != "x" {
		t.Errorf("got %v", r)
	}
}
