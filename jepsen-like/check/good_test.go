package check_test

import (
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

const ms = time.Millisecond

// at is the cluster clock at a moment of the harness's, when no time is lost.
func at(moment time.Duration) lease.Instant { return lease.Instant(1_000_000 * ms).Add(moment) }

// rec is key "k" as it is with that epoch.
func rec(owner string, epoch uint64, until time.Duration, floor uint64) lease.Record {
	return lease.Record{Key: "k", Owner: owner, Epoch: epoch, LeaseUntil: at(until), ForgottenAtEpoch: floor}
}

// goodRun is a run in which nothing is wrong: "a" holds, renews, forgets and releases;
// "b" gets the key after it, and has a renewal that nobody knows of; "c" comes after b.
func goodRun() history.Run {
	op := func(id int, client string, kind history.Kind, call time.Duration, o history.Op) history.Op {
		o.ID, o.Client, o.Kind, o.Key, o.Tries, o.Call = id, client, kind, "k", 1, call
		if o.Return == 0 {
			o.Return = call + 10*ms
		}
		if o.Outcome == "" {
			o.Outcome = history.OK
		}
		switch kind {
		case history.Acquire, history.Renew:
			o.Owner, o.TTL = client, time.Second
		case history.Release, history.Forget:
			o.Owner = client
		}
		if kind == history.Acquire {
			o.RequestID = client + "1"
		}
		if o.Outcome == history.OK && o.Now == 0 {
			o.Now = at(call + 5*ms)
		}
		return o
	}
	return history.Run{
		Info: history.Info{Nodes: []string{"n1", "n2", "n3"}, Length: 4 * time.Second},
		Ops: []history.Op{
			op(1, "a", history.Acquire, 0, history.Op{Record: rec("a", 1, 1005*ms, 0), Remaining: time.Second, Changed: true}),
			op(2, "b", history.Acquire, 20*ms, history.Op{Outcome: history.Held, Record: rec("a", 1, 1005*ms, 0), Remaining: 980 * ms}),
			op(3, "a", history.Renew, 300*ms, history.Op{Epoch: 1, Record: rec("a", 1, 1305*ms, 0), Remaining: time.Second, Changed: true}),
			op(4, "a", history.Forget, 400*ms, history.Op{Epoch: 1, Record: rec("a", 1, 1305*ms, 1), Remaining: 900 * ms, Changed: true}),
			op(5, "b", history.Get, 420*ms, history.Op{Record: rec("a", 1, 1305*ms, 1), Remaining: 880 * ms}),
			op(6, "a", history.Release, 500*ms, history.Op{Epoch: 1, Record: rec("a", 1, 505*ms, 1), Changed: true}),
			op(7, "b", history.GetStale, 520*ms, history.Op{Record: rec("a", 1, 1305*ms, 0), Now: at(305 * ms), Remaining: time.Second}),
			op(8, "b", history.Acquire, 600*ms, history.Op{Record: rec("b", 2, 1605*ms, 1), Remaining: time.Second, Changed: true}),
			op(9, "a", history.Renew, 620*ms, history.Op{Epoch: 1, Outcome: history.Lost, Record: rec("b", 2, 1605*ms, 1), Remaining: 980 * ms}),
			op(10, "b", history.Renew, 700*ms, history.Op{Epoch: 2, Outcome: history.Unknown, Return: 1700 * ms}),
			op(11, "c", history.Acquire, 3000*ms, history.Op{Record: rec("c", 3, 4005*ms, 1), Remaining: time.Second, Changed: true}),
			op(12, "c", history.Release, 3100*ms, history.Op{Epoch: 3, Record: rec("c", 3, 3105*ms, 1), Changed: true}),
			op(13, "b", history.Release, 3200*ms, history.Op{Epoch: 2, Outcome: history.Lost, Record: rec("c", 3, 3105*ms, 1)}),
			op(14, "b", history.Get, 3300*ms, history.Op{Record: rec("c", 3, 3105*ms, 1)}),
		},
		Beliefs: []history.Belief{
			{Holder: "a", Key: "k", Epoch: 1, From: 10 * ms, Until: 500 * ms},
			{Holder: "a", Key: "k", Epoch: 1, From: 310 * ms, Until: 500 * ms},
			{Holder: "b", Key: "k", Epoch: 2, From: 610 * ms, Until: 1400 * ms},
			{Holder: "c", Key: "k", Epoch: 3, From: 3010 * ms, Until: 3100 * ms},
		},
		Writes: []history.Write{
			{Seq: 1, Holder: "a", Key: "k", Token: 1, At: 20 * ms, Accepted: true},
			{Seq: 2, Holder: "b", Key: "k", Token: 2, At: 620 * ms, Accepted: true},
			{Seq: 3, Holder: "a", Key: "k", Token: 1, At: 640 * ms},
			{Seq: 4, Holder: "c", Key: "k", Token: 3, At: 3020 * ms, Accepted: true},
		},
		Faults: []history.Fault{{Kind: "cut", Targets: []string{"n1"}, From: 700 * ms, Until: 1700 * ms}},
		Stored: []lease.Entry{
			entry(11, lease.OpAcquire, "a", 1, 5*ms),
			entry(12, lease.OpRenew, "a", 1, 305*ms),
			entry(13, lease.OpForget, "a", 1, 405*ms),
			entry(14, lease.OpRelease, "a", 1, 505*ms),
			entry(15, lease.OpAcquire, "b", 2, 605*ms),
			entry(16, lease.OpAcquire, "c", 3, 3005*ms),
			entry(17, lease.OpRelease, "c", 3, 3105*ms),
		},
		Records:    []lease.Record{rec("c", 3, 3105*ms, 1)},
		Digests:    []history.Digest{{Node: "n1", Index: 17, Sum: "aa"}, {Node: "n2", Index: 17, Sum: "aa"}, {Node: "n3", Index: 16, Sum: "bb"}},
		Recoveries: []history.Recovery{{Node: "n1", Healed: 1700 * ms, Served: 2500 * ms}, {Node: "n2", Healed: 1700 * ms, Served: 1800 * ms}},
		Watched:    goodWatched(),
	}
}

func entry(index uint64, op lease.Op, owner string, epoch uint64, moment time.Duration) lease.Entry {
	return lease.Entry{Index: index, Op: op, Key: "k", Owner: owner, Epoch: epoch, At: at(moment)}
}

// doctor makes a run other than it was.
type doctor func(*history.Run)

// op changes the operation with that id.
func op(id int, change func(*history.Op)) doctor {
	return func(run *history.Run) {
		for i := range run.Ops {
			if run.Ops[i].ID == id {
				change(&run.Ops[i])
			}
		}
	}
}

// add adds an operation, of one try.
func add(o history.Op) doctor {
	return func(run *history.Run) {
		o.Key, o.Tries = "k", 1
		if o.ID == 0 {
			o.ID = 100 + len(run.Ops)
		}
		run.Ops = append(run.Ops, o)
	}
}

// all is one doctor after the other.
func all(doctors ...doctor) doctor {
	return func(run *history.Run) {
		for _, d := range doctors {
			d(run)
		}
	}
}

// without removes the operation with that id.
func without(id int) doctor {
	return func(run *history.Run) {
		var kept []history.Op
		for _, o := range run.Ops {
			if o.ID != id {
				kept = append(kept, o)
			}
		}
		run.Ops = kept
	}
}

// only removes all operations but those with these ids.
func only(ids ...int) doctor {
	return func(run *history.Run) {
		run.Ops = slices.DeleteFunc(run.Ops, func(o history.Op) bool { return !slices.Contains(ids, o.ID) })
	}
}
