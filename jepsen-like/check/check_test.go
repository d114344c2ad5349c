package check_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/history/historytest"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestRunsOfARightStorePass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := historytest.Make(historytest.Setup{
			Seed: rapid.Uint64().Draw(t, "seed"), Clients: rapid.IntRange(1, 10).Draw(t, "clients"), Keys: []string{"a", "b"},
			Length: 15 * time.Second, Loss: rapid.IntRange(0, 40).Draw(t, "loss"), Tries: rapid.IntRange(0, 1).Draw(t, "tries"),
		})
		verdict := check.Judge(run, check.Options{PerKey: 10 * time.Second, Skip: map[string]string{"watched": "nobody watches"}})
		if verdict.Status() == check.Unknown && onlyTheOrder(verdict) {
			t.Skip("the search for an order takes too long: there are runs for which no time is enough")
		}
		if verdict.Status() != check.Pass {
			t.Fatalf("%s", verdict.Summary())
		}
	})
}

// onlyTheOrder reports whether the order of answers is all that is not known to be right.
func onlyTheOrder(v check.Verdict) bool {
	for _, c := range v.Checks {
		if c.Status != check.Pass && c.Status != check.Skipped && c.Name != "linearizable" {
			return false
		}
	}
	return true
}

// broken are stores that break a rule which the runs of historytest come across.
func broken() map[string]func(lease.Store) lease.Store {
	return map[string]func(lease.Store) lease.Store{
		"EvictsHolder":        func(s lease.Store) lease.Store { return leasetest.EvictsHolder{Store: s} },
		"AdmitsHolderAgain":   func(s lease.Store) lease.Store { return leasetest.AdmitsHolderAgain{Store: s} },
		"ConstantEpoch":       func(s lease.Store) lease.Store { return leasetest.ConstantEpoch{Store: s} },
		"GrantsRetryAnew":     func(s lease.Store) lease.Store { return leasetest.GrantsRetryAnew{Store: s} },
		"IgnoresRequestIDs":   func(s lease.Store) lease.Store { return leasetest.IgnoresRequestIDs{Store: s} },
		"ExpiresEarly":        func(s lease.Store) lease.Store { return leasetest.ExpiresEarly{Store: s} },
		"RenewsForAnyone":     func(s lease.Store) lease.Store { return leasetest.RenewsForAnyone{Store: s} },
		"RenewsAfterEnd":      func(s lease.Store) lease.Store { return leasetest.RenewsAfterEnd{Store: s} },
		"ShortensLease":       func(s lease.Store) lease.Store { return leasetest.ShortensLease{Store: s} },
		"OverstatesRemaining": func(s lease.Store) lease.Store { return leasetest.OverstatesRemaining{Store: s} },
		"ReleasesForAnyone":   func(s lease.Store) lease.Store { return leasetest.ReleasesForAnyone{Store: s} },
		"ReleasesOnce":        func(s lease.Store) lease.Store { return leasetest.ReleasesOnce{Store: s} },
		"DropsFloor":          func(s lease.Store) lease.Store { return leasetest.DropsFloor{Store: s} },
		"ForgetsForAnyone":    func(s lease.Store) lease.Store { return leasetest.ForgetsForAnyone{Store: s} },
		"ReversesHistory":     func(s lease.Store) lease.Store { return leasetest.ReversesHistory{Store: s} },
	}
}

func TestRunsOfABrokenStoreAreCaught(t *testing.T) {
	const seeds = 12
	for name, wrap := range broken() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds) {
				run := historytest.Make(historytest.Setup{Seed: seed, Clients: 10 - 7*int(seed%2), Keys: []string{"k"}, Length: 60 * time.Second, Loss: 15, Tries: 1, Wrap: wrap})
				verdict := check.Judge(run, check.Options{PerKey: 5 * time.Second})
				if verdict.Status() != check.Fail {
					continue
				}
				var by []string
				for _, c := range verdict.Checks {
					if c.Status == check.Fail {
						by = append(by, c.Name)
					}
				}
				t.Logf("caught with seed %d by %s", seed, strings.Join(by, ", "))
				return
			}
			t.Errorf("not caught with any of %d seeds", seeds)
		})
	}
}

// nearMisses are runs that look wrong and are not.
func nearMisses() map[string]doctor {
	return map[string]doctor{
		"a lease that ends in the millisecond of the next grant": all(without(6), without(9), func(r *history.Run) {
			r.Stored = slices.Delete(r.Stored, 3, 4)
			r.Stored[3].At = at(1305 * ms)
			r.Beliefs, r.Writes = r.Beliefs[:2], nil
		}, op(8, func(o *history.Op) {
			o.Call, o.Return, o.Now, o.Record.LeaseUntil = 1300*ms, 1310*ms, at(1305*ms), at(2305*ms)
		}), op(10, func(o *history.Op) { o.Client = "another for b" })),
		"a renewal in the last millisecond": all(without(4), without(5), without(6), without(7), func(r *history.Run) {
			r.Stored = slices.Delete(r.Stored, 2, 4)
			r.Stored[1].At, r.Stored[2].At = at(1005*ms), at(2005*ms)
			r.Records[0].ForgottenAtEpoch = 0
			r.Beliefs, r.Writes = r.Beliefs[:1], nil
			for i := range r.Ops {
				r.Ops[i].Record.ForgottenAtEpoch = 0
			}
		}, op(3, func(o *history.Op) {
			o.Call, o.Return, o.Now, o.Record.LeaseUntil = 1000*ms, 1010*ms, at(1005*ms), at(2005*ms)
		}),
			op(8, func(o *history.Op) {
				o.Call, o.Return, o.Now, o.Record.LeaseUntil = 2000*ms, 2010*ms, at(2005*ms), at(3005*ms)
			}), without(9), without(10)),
		"a read that rounds up":                     op(5, func(o *history.Op) { o.Remaining += ms }),
		"a forget that rounds down":                 op(4, func(o *history.Op) { o.Remaining -= ms }),
		"a refusal that rounds up":                  op(2, func(o *history.Op) { o.Remaining += ms }),
		"a refusal in the millisecond of the grant": op(2, func(o *history.Op) { o.Call, o.Remaining = ms, 1001*ms }),
		"beliefs that touch":                        func(r *history.Run) { r.Beliefs[2].Until = 3010 * ms },
		"a read ahead of the log":                   op(5, func(o *history.Op) { o.Now, o.Remaining = at(430*ms), 875*ms }),
		"an unknown renewal took effect":            all(op(11, func(o *history.Op) { o.Call, o.Return = 2990*ms, 3010*ms }), add(history.Op{Client: "d", Kind: history.Get, Call: 2000 * ms, Return: 2010 * ms, Outcome: history.OK, Record: rec("b", 2, 2555*ms, 1), Now: at(2005 * ms), Remaining: 550 * ms}), stored(5, entry(16, lease.OpRenew, "b", 2, 1555*ms))),
		"an unknown release took effect, later": all(
			op(10, func(o *history.Op) { o.Kind, o.TTL = history.Release, 0 }),
			op(11, func(o *history.Op) {
				o.Call, o.Return, o.Now, o.Record.LeaseUntil = 1500*ms, 1510*ms, at(1505*ms), at(2505*ms)
			}),
			add(history.Op{Client: "d", Kind: history.Get, Call: 1450 * ms, Return: 1460 * ms, Outcome: history.OK, Record: rec("b", 2, 1420*ms, 1), Now: at(1455 * ms)}),
			without(12), without(13), without(14), func(r *history.Run) {
				r.Beliefs[2].Until = 1400 * ms
				r.Stored[5].At = at(1505 * ms)
				r.Stored = r.Stored[:6]
				r.Records[0].LeaseUntil = at(2505 * ms)
				r.Beliefs[3].From, r.Beliefs[3].Until = 1510*ms, 1600*ms
			}),
		"an unknown acquire took effect after the client had gone": all(add(history.Op{Client: "d", Kind: history.Acquire, Owner: "d", TTL: time.Second, RequestID: "d1", Call: 900 * ms, Return: 950 * ms, Outcome: history.Unknown}),
			op(11, func(o *history.Op) { o.Record.Epoch, o.Call, o.Return = 4, 2990*ms, 3010*ms }), op(12, func(o *history.Op) { o.Record.Epoch, o.Epoch = 4, 4 }), op(13, func(o *history.Op) { o.Record.Epoch = 4 }), op(14, func(o *history.Op) { o.Record.Epoch = 4 }),
			stored(5, entry(16, lease.OpAcquire, "d", 3, 1700*ms)), func(r *history.Run) {
				r.Stored[6].Epoch, r.Stored[7].Epoch, r.Records[0].Epoch, r.Beliefs[3].Epoch, r.Writes[3].Token = 4, 4, 4, 4, 4
			}),
		"a retried acquire gets its grant": all(add(history.Op{ID: 40, Client: "b", Kind: history.Acquire, Owner: "b", TTL: time.Second, RequestID: "b1", Call: 550 * ms, Return: 560 * ms, Outcome: history.Unknown}),
			op(8, func(o *history.Op) { o.Changed, o.Record.LeaseUntil, o.Remaining = false, at(1570*ms), 965*ms }), op(9, func(o *history.Op) { o.Record.LeaseUntil, o.Remaining = at(1570*ms), 945*ms }),
			func(r *history.Run) { r.Stored[4].At = at(570 * ms); r.Beliefs[2].Until = 1300 * ms }),
		"a client that tries by itself gets its grant": all(op(8, func(o *history.Op) {
			o.Tries, o.RequestID, o.Call, o.Changed, o.Record.LeaseUntil, o.Remaining = 0, "", 550*ms, false, at(1570*ms), 965*ms
		}),
			op(9, func(o *history.Op) { o.Record.LeaseUntil, o.Remaining = at(1570*ms), 945*ms }), func(r *history.Run) { r.Stored[4].At = at(570 * ms); r.Beliefs[2].Until = 1300 * ms }),
		"a renewal after the local deadline": all(op(3, func(o *history.Op) {
			o.Call, o.Return, o.Now, o.Record.LeaseUntil = 900*ms, 910*ms, at(905*ms), at(1905*ms)
		}), without(4), without(5), without(6), without(7), without(9), without(10),
			op(8, func(o *history.Op) {
				o.Call, o.Return, o.Now, o.Record.LeaseUntil = 2000*ms, 2010*ms, at(2005*ms), at(3005*ms)
			}), func(r *history.Run) {
				for i := range r.Ops {
					r.Ops[i].Record.ForgottenAtEpoch = 0
				}
				r.Records[0].ForgottenAtEpoch = 0
				r.Stored = slices.Delete(r.Stored, 2, 4)
				r.Stored[1].At, r.Stored[2].At = at(905*ms), at(2005*ms)
				r.Writes = nil
				r.Beliefs = []history.Belief{{Holder: "a", Key: "k", Epoch: 1, From: 10 * ms, Until: 800 * ms}, {Holder: "a", Key: "k", Epoch: 1, From: 910 * ms, Until: 1700 * ms}}
			}),
		"the cluster loses time": op(14, func(o *history.Op) { o.Now = at(3106 * ms) }),
		"a leader's clock is lost with it": all(
			add(history.Op{Client: "d", Kind: history.Get, Call: 2000 * ms, Return: 2010 * ms, Outcome: history.OK, Record: rec("b", 2, 1605*ms, 1), Now: at(2005 * ms)}),
			op(11, func(o *history.Op) { o.Now, o.Record.LeaseUntil = at(2004*ms), at(3004*ms) }),
			op(12, func(o *history.Op) { o.Now, o.Record.LeaseUntil = at(2104*ms), at(2104*ms) }),
			op(13, func(o *history.Op) { o.Record.LeaseUntil = at(2104 * ms) }),
			op(14, func(o *history.Op) { o.Now, o.Record.LeaseUntil = at(2304*ms), at(2104*ms) }),
			func(r *history.Run) {
				r.Stored[5].At, r.Stored[6].At, r.Records[0].LeaseUntil = at(2004*ms), at(2104*ms), at(2104*ms)
			}),
		"history that was trimmed":      func(r *history.Run) { r.Stored = r.Stored[1:] },
		"operations that were not done": add(history.Op{Client: "d", Kind: history.Acquire, Owner: "d", TTL: time.Second, Call: 100 * ms, Return: 200 * ms, Outcome: history.Unavailable}),
		"a stale read of long ago":      op(7, func(o *history.Op) { o.Record, o.Now, o.Remaining = rec("a", 1, 1005*ms, 0), at(5*ms), time.Second }),
		"a stale read of nothing":       op(7, func(o *history.Op) { o.Record, o.Now, o.Remaining = lease.Record{Key: "k"}, at(0), 0 }),
		"a read of a leader whose clock was lost with it": readAndRelease(
			read{call: 3400 * ms, now: 3420 * ms}, release{call: 3495 * ms, now: 3400 * ms}),
		"a clock that is fast within the rate": func(r *history.Run) {
			op(14, func(o *history.Op) { o.Now = at(3318 * ms) })(r)
		},
	}
}

// read and release are when each was called, and the clock it tells, both as moments of
// the harness's; each returns 100 ms after it was called.
type (
	read    struct{ call, now time.Duration }
	release struct{ call, now time.Duration }
)

// readAndRelease adds a read of the key when it is free, and a release that repeats the last.
func readAndRelease(r read, again release) doctor {
	free := rec("c", 3, 3105*ms, 1)
	return all(
		add(history.Op{Client: "d", Kind: history.Get, Call: r.call, Return: r.call + 100*ms, Outcome: history.OK, Record: free, Now: at(r.now)}),
		add(history.Op{Client: "c", Kind: history.Release, Owner: "c", Epoch: 3, Call: again.call, Return: again.call + 100*ms, Outcome: history.OK, Record: free, Now: at(again.now)}),
	)
}

// A program that is not ours tells what it believed and wrote, and no operations.
func TestAProgramThatRecordsNoOperationsCanBeJudged(t *testing.T) {
	run := goodRun()
	run.Ops = nil
	verdict := check.Judge(run, check.Options{})
	if verdict.Status() != check.Pass {
		t.Errorf("%s", verdict.Summary())
	}
	run.Beliefs[2].Until = 3020 * ms
	if got := check.Judge(run, check.Options{}).Check("exclusion").Status; got != check.Fail {
		t.Errorf("beliefs that overlap: exclusion is %s, want fail", got)
	}
}

// stored puts an entry into the stored history before the i-th.
func stored(i int, e lease.Entry) doctor {
	return func(run *history.Run) { run.Stored = slices.Insert(run.Stored, i, e) }
}

func TestNearMissesPass(t *testing.T) {
	cases := nearMisses()
	for what, doctor := range cases { // most change what happened, and nobody watches that
		cases[what] = all(doctor, func(r *history.Run) { r.Watched = nil })
	}
	maps.Copy(cases, nearWatches())
	for what, doctored := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			run := goodRun()
			doctored(&run)
			for i := range run.Ops { // some were taken out, and so never asked for
				run.Ops[i].ID = i + 1
			}
			o := check.Options{Skip: map[string]string{}}
			if run.Watched == nil {
				o.Skip["watched"] = "nobody watches"
			}
			if strings.Contains(what, "rate") {
				o.Rate = 0.01
			}
			if strings.Contains(what, "trimmed") {
				o.KeptGrants, o.KeptRenewals = 2, 8
			}
			if verdict := check.Judge(run, o); verdict.Status() != check.Pass {
				t.Errorf("%s", verdict.Summary())
			}
		})
	}
}

func TestWhatCannotBeLookedAtIsUnknown(t *testing.T) {
	for name, strip := range map[string]doctor{
		"history":      func(r *history.Run) { r.Stored = nil },
		"acknowledged": func(r *history.Run) { r.Records = nil },
		"digests":      func(r *history.Run) { r.Digests = r.Digests[1:] },
		"liveness":     func(r *history.Run) { r.Recoveries = nil },
		"watched":      func(r *history.Run) { r.Watched = nil },
		"recorded":     func(r *history.Run) { r.Ops = slices.Delete(r.Ops, 6, 7) },
		"resource":     func(r *history.Run) { r.Writes = r.Writes[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			run := goodRun()
			strip(&run)
			verdict := check.Judge(run, check.Options{})
			if got := verdict.Check(name).Status; got != check.Unknown || verdict.Status() != check.Unknown {
				t.Errorf("%s is %s and the run %s, want unknown", name, got, verdict.Status())
			}
			if !strings.HasPrefix(verdict.Summary(), "UNKNOWN\n") {
				t.Errorf("the summary begins otherwise:\n%s", verdict.Summary())
			}
			verdict = check.Judge(run, check.Options{Skip: map[string]string{name: "not told"}})
			if got := verdict.Check(name).Status; got != check.Skipped || verdict.Status() != check.Pass {
				t.Errorf("skipped, %s is %s and the run %s, want skipped and pass", name, got, verdict.Status())
			}
		})
	}
}

func TestAKeyThatTakesTooLongIsUnknown(t *testing.T) {
	run := historytest.Make(historytest.Setup{Seed: 1, Clients: 10, Keys: []string{"k"}, Length: 60 * time.Second, Loss: 15, Tries: 1})
	verdict := check.Judge(run, check.Options{PerKey: time.Nanosecond})
	if c := verdict.Check("linearizable"); c.Status != check.Unknown || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], `"k"`) {
		t.Errorf("%+v, want unknown and a note about the key", c)
	}
}
