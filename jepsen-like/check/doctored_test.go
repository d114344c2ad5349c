package check_test

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

func TestAGoodRunPasses(t *testing.T) {
	if v := check.Judge(goodRun(), check.Options{}); v.Status() != check.Pass {
		t.Errorf("%s", v.Summary())
	}
}

// doctored are the good run with one thing wrong, by the check that has to say so.
func doctored() map[string]map[string]doctor {
	return map[string]map[string]doctor{
		"recorded":     doctoredLines(),
		"believed":     doctoredCertainties(),
		"linearizable": doctoredAnswers(),
		"fresh": {
			"misses a grant":   op(14, func(o *history.Op) { o.Record = rec("b", 2, 1605*ms, 1) }),
			"misses a floor":   op(5, func(o *history.Op) { o.Record.ForgottenAtEpoch = 0 }),
			"misses a renewal": op(5, func(o *history.Op) { o.Record.LeaseUntil, o.Remaining = at(1005*ms), 580*ms }),
			"misses a release": op(14, func(o *history.Op) { o.Record.LeaseUntil, o.Remaining = at(4005*ms), 700*ms }),
		},
		"stale-reads":  doctoredStaleReads(),
		"epochs":       doctoredEpochs(),
		"exclusion":    doctoredBeliefs(),
		"resource":     doctoredWrites(),
		"floor":        doctoredFloors(),
		"history":      doctoredHistories(),
		"acknowledged": doctoredRecords(),
		"digests": {
			"one node differs":       func(r *history.Run) { r.Digests[1].Sum = "ab" },
			"a node differs in time": func(r *history.Run) { r.Digests = append(r.Digests, history.Digest{Node: "n3", Index: 16, Sum: "bc"}) },
		},
		"watched": doctoredWatches(),
		"clock":   doctoredClocks(),
		"liveness": {
			"a node never serves":            func(r *history.Run) { r.Recoveries[1].Served = -1 },
			"no answer shows that it served": op(14, func(o *history.Op) { o.Node = "n2" }),
			"a node serves too late":         func(r *history.Run) { r.Recoveries[0].Served = 1700*ms + 20*time.Second + 1 },
		},
	}
}

func doctoredStaleReads() map[string]doctor {
	cases := map[string]doctor{
		"epoch of the future":   op(7, func(o *history.Op) { o.Record = rec("c", 3, 4005*ms, 1) }),
		"epoch never granted":   op(7, func(o *history.Op) { o.Record.Epoch = 9 }),
		"other owner":           op(7, func(o *history.Op) { o.Record.Owner = "z" }),
		"floor that nobody set": op(7, func(o *history.Op) { o.Call, o.Return, o.Record.ForgottenAtEpoch = 310*ms, 320*ms, 1 }),
		"end that nobody made":  op(7, func(o *history.Op) { o.Record.LeaseUntil, o.Remaining = at(1306*ms), 1001*ms }),
		"end that no watcher was told": all(op(3, func(o *history.Op) { o.Tries = 2 }), op(7, func(o *history.Op) {
			o.Record.LeaseUntil, o.Remaining = at(1306*ms), 1001*ms
		})),
		"over before its end": op(7, func(o *history.Op) { o.Remaining = 0 }),
		"too little remains":  op(7, func(o *history.Op) { o.Remaining -= ms }),
		"too much remains":    op(7, func(o *history.Op) { o.Remaining += 2 * ms }),
	}
	for what, change := range cases { // most are wrong whoever watches
		if what != "end that no watcher was told" {
			cases[what+", and nobody watches"] = all(nobodyWatched, change)
		}
	}
	return cases
}

func doctoredAnswers() map[string]doctor {
	return map[string]doctor{
		"granted while held": op(2, func(o *history.Op) {
			o.Outcome, o.Changed, o.Record, o.Remaining, o.Now = history.OK, true, rec("b", 2, 1025*ms, 0), time.Second, at(25*ms)
		}),
		"granted 1 ms early": all(without(6), op(8, func(o *history.Op) {
			o.Call, o.Return, o.Now, o.Record.LeaseUntil = 1300*ms, 1310*ms, at(1304*ms), at(2304*ms)
		}), without(9)),
		"renewed a millisecond late": all(only(1, 3), op(3, func(o *history.Op) {
			o.Call, o.Return, o.Now, o.Record.LeaseUntil = 1000*ms, 1010*ms, at(1006*ms), at(2006*ms)
		})),
		"grant with too much left":                op(8, func(o *history.Op) { o.Remaining += ms }),
		"renewal that changes nothing and should": all(only(1, 3), op(3, func(o *history.Op) { o.Changed, o.Record.LeaseUntil = false, at(1005*ms) })),
		"a floor that is gone":                    op(14, func(o *history.Op) { o.Record.ForgottenAtEpoch = 0 }),
		"held by an older clock":                  all(only(1, 2), op(2, func(o *history.Op) { o.Remaining = 1002 * ms })),
		"renewed after the next": op(9, func(o *history.Op) {
			o.Outcome, o.Record, o.Remaining, o.Now = history.OK, rec("a", 1, 1625*ms, 1), time.Second, at(625*ms)
		}),
		"too much remains":       op(3, func(o *history.Op) { o.Remaining += ms }),
		"too little remains":     op(4, func(o *history.Op) { o.Remaining -= 2 * ms }),
		"grant ends too late":    op(8, func(o *history.Op) { o.Record.LeaseUntil++; o.Record.LeaseUntil = o.Record.LeaseUntil.Add(ms) }),
		"renewal shortens":       op(3, func(o *history.Op) { o.Record.LeaseUntil = at(1004 * ms) }),
		"a read calls it free":   op(5, func(o *history.Op) { o.Remaining = 0 }),
		"a read calls it held":   op(14, func(o *history.Op) { o.Remaining = ms }),
		"held after its release": add(history.Op{Client: "d", Kind: history.Acquire, Owner: "d", TTL: time.Second, RequestID: "d1", Call: 550 * ms, Return: 560 * ms, Outcome: history.Held, Record: rec("a", 1, 1305*ms, 1), Remaining: 750 * ms}),
		"lost though it is held": op(5, func(o *history.Op) {
			o.Kind, o.Client, o.Owner, o.Epoch, o.TTL, o.Outcome, o.Now = history.Renew, "a", "a", 1, time.Second, history.Lost, 0
		}),
		"release that says it did not": op(6, func(o *history.Op) { o.Changed = false }),
		"forget that says it did not":  op(4, func(o *history.Op) { o.Changed = false }),
		"retry granted anew":           op(11, func(o *history.Op) { o.Owner, o.RequestID, o.Record.Owner = "a", "a1", "a" }),
		"retry gets another grant":     op(8, func(o *history.Op) { o.Changed = false }),
		"retry told that it is held":   op(2, func(o *history.Op) { o.Client, o.Owner, o.RequestID = "a", "a", "a1" }),
		"clock back":                   op(4, func(o *history.Op) { o.Now, o.Remaining = at(304*ms), time.Second }),
		"read of an older clock":       op(5, func(o *history.Op) { o.Now, o.Remaining = at(404*ms), 901*ms }),
		"never granted":                op(14, func(o *history.Op) { o.Record = lease.Record{Key: "k"} }),
	}
}

func doctoredEpochs() map[string]doctor {
	return map[string]doctor{
		"two owners of one":            op(14, func(o *history.Op) { o.Record.Owner = "b" }),
		"granted twice to one attempt": op(11, func(o *history.Op) { o.Owner, o.RequestID, o.Record.Owner, o.Record.Epoch = "b", "b1", "b", 2 }),
		"granted twice":                op(11, func(o *history.Op) { o.Record.Epoch = 2 }),
		"one for two attempts":         op(8, func(o *history.Op) { o.Owner, o.Changed, o.Record.Owner, o.Record.Epoch = "a", false, "a", 1 }),
		"another's grant":              op(8, func(o *history.Op) { o.Record.Owner = "a" }),
		"back":                         op(14, func(o *history.Op) { o.Record.Epoch = 2; o.Record.Owner = "b" }),
		"one left out":                 all(op(11, func(o *history.Op) { o.Record.Epoch = 4 }), op(12, func(o *history.Op) { o.Record.Epoch = 4 })),
		"one for nobody": all(op(11, func(o *history.Op) { o.Record.Epoch = 4 }), op(12, func(o *history.Op) { o.Epoch, o.Record.Epoch = 4, 4 }),
			op(13, func(o *history.Op) { o.Record.Epoch = 4 }), op(14, func(o *history.Op) { o.Record.Epoch = 4 }), func(r *history.Run) {
				r.Stored[5].Epoch, r.Stored[6].Epoch, r.Records[0].Epoch, r.Beliefs[3].Epoch, r.Writes[3].Token = 4, 4, 4, 4, 4
			}),
		"belief without a grant": func(r *history.Run) { r.Beliefs[3].Epoch = 4 },
		"one for two attempts without ids": all(op(1, func(o *history.Op) { o.RequestID = "" }), op(8, func(o *history.Op) {
			o.Owner, o.Tries, o.RequestID, o.Changed, o.Record.Owner, o.Record.Epoch = "a", 0, "", false, "a", 1
		})),
		"belief of two":           func(r *history.Run) { r.Beliefs[1].Holder = "z" },
		"another in the record":   func(r *history.Run) { r.Records[0].Owner = "z" },
		"owner without acquiring": op(14, func(o *history.Op) { o.Record.Epoch, o.Record.Owner = 4, "z" }),
	}
}

func doctoredBeliefs() map[string]doctor {
	return map[string]doctor{
		"a nanosecond": func(r *history.Run) { r.Beliefs[2].Until = 3010*ms + 1 },
		"inside a longer one": func(r *history.Run) {
			r.Beliefs = append(r.Beliefs, history.Belief{Holder: "c", Key: "k", Epoch: 3, From: 700 * ms, Until: 710 * ms})
		},
		"in the longer of two, told last": func(r *history.Run) {
			r.Beliefs[0].Until, r.Beliefs[1].Until = 320*ms, 620*ms
		},
		"in the longer of two, told first": func(r *history.Run) { r.Beliefs[0].Until = 620 * ms },
		"two of one epoch":                 func(r *history.Run) { r.Beliefs[1].Holder = "z" },
		"one holder, two grants": func(r *history.Run) {
			r.Beliefs[2] = history.Belief{Holder: "a", Key: "k", Epoch: 2, From: 450 * ms, Until: 1400 * ms}
		},
	}
}

func doctoredWrites() map[string]doctor {
	return map[string]doctor{
		"older after newer":      func(r *history.Run) { r.Writes[2].Accepted = true },
		"never granted":          func(r *history.Run) { r.Writes[3].Token = 4 },
		"one number twice":       func(r *history.Run) { r.Writes[3].Seq = 3 },
		"no number":              func(r *history.Run) { r.Writes[0].Seq = 0 },
		"told twice":             func(r *history.Run) { r.Writes = append(r.Writes, r.Writes[3]) },
		"a newer one is refused": func(r *history.Run) { r.Writes[3].Accepted = false },
		"the latest is refused": func(r *history.Run) {
			r.Writes = append(r.Writes, history.Write{Seq: 5, Holder: "c", Key: "k", Token: 3, At: 3030 * ms})
		},
		"a holder's in another order": func(r *history.Run) { r.Writes[2].At = 10 * ms },
		"never granted, as far as the store tells": func(r *history.Run) {
			for i := range r.Stored {
				r.Stored[i].Key = "other"
			}
			r.Writes[3].Key, r.Writes[3].Token = "other", 4
		},
	}
}

func doctoredFloors() map[string]doctor {
	return map[string]doctor{
		"back": op(14, func(o *history.Op) { o.Record.ForgottenAtEpoch = 0 }),
		"above the epoch": all(add(history.Op{Client: "b", Kind: history.Forget, Owner: "b", Epoch: 2, Call: 350 * ms, Return: 360 * ms, Outcome: history.Unknown}),
			op(5, func(o *history.Op) { o.Record.ForgottenAtEpoch = 2 })),
		"back in the last record": func(r *history.Run) { r.Records[0].ForgottenAtEpoch = 0 },
		"asked by nobody":         op(14, func(o *history.Op) { o.Record.ForgottenAtEpoch = 2 }),
		"before it was asked":     op(3, func(o *history.Op) { o.Record.ForgottenAtEpoch = 1 }),
	}
}

func doctoredHistories() map[string]doctor {
	drop := func(i int) doctor {
		return func(r *history.Run) { r.Stored = append(r.Stored[:i:i], r.Stored[i+1:]...) }
	}
	swap := func(i, j int) doctor {
		return func(r *history.Run) { r.Stored[i], r.Stored[j] = r.Stored[j], r.Stored[i] }
	}
	return map[string]doctor{
		"a grant is missing":                     drop(4),
		"the first is missing":                   drop(0),
		"a renewal is missing":                   drop(1),
		"a release is missing":                   drop(6),
		"a forget is missing":                    drop(2),
		"out of order":                           swap(1, 2),
		"the clock back":                         func(r *history.Run) { r.Stored[1].At = at(4 * ms) },
		"another instant":                        func(r *history.Run) { r.Stored[1].At = at(306 * ms) },
		"another owner":                          func(r *history.Run) { r.Stored[5].Owner = "z" },
		"the clock back in one of a lost answer": stored(5, entry(16, lease.OpRenew, "b", 2, 604*ms)),
		"an epoch left out by one of a lost answer": all(
			add(history.Op{Client: "d", Kind: history.Acquire, Owner: "d", TTL: time.Second, RequestID: "d1", Call: 3400 * ms, Return: 3500 * ms, Outcome: history.Unknown}),
			stored(7, entry(18, lease.OpAcquire, "d", 5, 3500*ms))),
		"an entry by nobody":    func(r *history.Run) { r.Stored = append(r.Stored, entry(18, lease.OpForget, "c", 3, 3105*ms)) },
		"one too often":         func(r *history.Run) { r.Stored = append(r.Stored, r.Stored[6]) },
		"renewed by a late one": func(r *history.Run) { r.Stored = append(r.Stored, entry(18, lease.OpRenew, "b", 2, 3106*ms)) },
		"an epoch is left out":  func(r *history.Run) { r.Stored[5].Epoch, r.Stored[6].Epoch = 4, 4 },

		"of a holder: an epoch is left out":         all(heldOnly, func(r *history.Run) { r.Stored[7].Epoch = 3 }),
		"of a holder: the clock back":               all(heldOnly, func(r *history.Run) { r.Stored[8].At = r.Stored[7].At - 1 }),
		"of a holder: another's in the middle":      all(heldOnly, func(r *history.Run) { r.Stored[8].Owner = "h1" }),
		"of a holder: a belief that was another's":  all(heldOnly, func(r *history.Run) { r.Stored[7].Owner, r.Stored[8].Owner = "h3", "h3" }),
		"of a holder: a belief that nobody granted": all(heldOnly, func(r *history.Run) { r.Stored = r.Stored[:7] }),
		"of a holder: the first grant is missing":   all(heldOnly, func(r *history.Run) { r.Stored = append(r.Stored[:6:6], r.Stored[7:]...) }),
		"of a holder: a write that was another's":   all(heldOnly, func(r *history.Run) { r.Writes[5].Holder = "h1" }),
		"of a holder: nothing is stored":            all(heldOnly, func(r *history.Run) { r.Stored = r.Stored[:6] }),
	}
}

func doctoredRecords() map[string]doctor {
	return map[string]doctor{
		"a grant is lost":                   all(nobodyWatched, func(r *history.Run) { r.Records[0] = rec("b", 2, 1605*ms, 1) }),
		"a floor is lost":                   all(nobodyWatched, func(r *history.Run) { r.Records[0].ForgottenAtEpoch = 0 }),
		"a key is lost":                     all(nobodyWatched, func(r *history.Run) { r.Records[0].Key = "other" }),
		"a key is there twice":              func(r *history.Run) { r.Records = append(r.Records, r.Records[0]) },
		"a holder's key is lost":            all(heldOnly, nobodyWatched, func(r *history.Run) { r.Records = r.Records[:1] }),
		"a holder's grant is lost":          all(heldOnly, nobodyWatched, func(r *history.Run) { r.Records[1].Epoch, r.Records[1].Owner = 1, "h1" }),
		"an end that no watcher was told":   func(r *history.Run) { r.Records[0].LeaseUntil = at(3106 * ms) },
		"an owner that no watcher was told": func(r *history.Run) { r.Records[0].Owner = "z" },
		"a floor that no watcher was told":  func(r *history.Run) { r.Records[0].ForgottenAtEpoch = 3 },
		"a renewal is lost": all(nobodyWatched, without(11), without(12), without(13), without(14), func(r *history.Run) {
			r.Records[0] = rec("b", 2, 1604*ms, 1)
		}),
	}
}

func doctoredClocks() map[string]doctor {
	return map[string]doctor{
		"too fast by 2 ms": op(14, func(o *history.Op) { o.Now = at(3310*ms + 7*ms) }),
		"a read too fast after a mutation": readAndRelease(
			read{call: 3501 * ms, now: 3620 * ms}, release{call: 3400 * ms, now: 3400 * ms}),
		"a mutation too fast beside a read": readAndRelease(
			read{call: 3495 * ms, now: 3400 * ms}, release{call: 3400 * ms, now: 3420 * ms}),
		"held for too long":         add(history.Op{Client: "d", Kind: history.Acquire, Owner: "d", TTL: time.Second, RequestID: "d1", Call: 2900 * ms, Return: 2910 * ms, Outcome: history.Held, Record: rec("b", 2, 1605*ms, 1), Remaining: ms}),
		"back":                      op(14, func(o *history.Op) { o.Now = at(3104 * ms) }),
		"an event too early":        func(r *history.Run) { r.Watched[6].When = 516 * ms },
		"a belief before its grant": func(r *history.Run) { r.Beliefs[3].From = 2998 * ms },
		"a write before its grant":  func(r *history.Run) { r.Writes[3].At = 2998 * ms },
		"back after an event":       all(op(14, func(o *history.Op) { o.Call, o.Now = 3120*ms, at(3104*ms) }), without(13), without(12)),
		"over before its end":       op(9, func(o *history.Op) { o.Remaining = 0 }),
		"lease ends early": all(without(6), without(9), op(8, func(o *history.Op) {
			o.Call, o.Return, o.Now, o.Record.LeaseUntil = 1200*ms, 1298*ms, at(1205*ms), at(2205*ms)
		})),
	}
}

func TestEveryDoctoredRunIsCaughtByItsCheck(t *testing.T) {
	for name, cases := range doctored() {
		for what, doctored := range cases {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				run := goodRun()
				doctored(&run)
				verdict := check.Judge(run, check.Options{Recovery: 20 * time.Second})
				c := verdict.Check(name)
				if c.Status != check.Fail || verdict.Status() != check.Fail {
					t.Fatalf("not caught:\n%s", verdict.Summary())
				}
				if c.Found < 1 || c.Violations[0].Text == "" || c.Violations[0].Check != name {
					t.Errorf("no violation is told: %+v", c)
				}
			})
		}
	}
}
