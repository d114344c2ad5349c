package check

import (
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
	"github.com/leasenode/leasenode/lease"
)

// fact is what an event, an entry of the stored history and an acknowledged change have
// in common. The index of a change is not known to its client.
type fact struct {
	key   string
	act   act
	index uint64 // 0 for a change
}

func factOf(w history.Watched) fact {
	kinds := map[string]history.Kind{
		lease.Acquired.String(): history.Acquire, lease.Renewed.String(): history.Renew,
		lease.Released.String(): history.Release, lease.Forgotten.String(): history.Forget,
	}
	return fact{w.Key, act{kinds[w.Event], w.Owner, w.Epoch, w.At.Millis()}, w.Index}
}

func factOfEntry(e lease.Entry) fact { return fact{e.Key, actOfEntry(e), e.Index} }

// withoutIndex is the fact as a client knows it.
func (f fact) withoutIndex() fact {
	f.index = 0
	return f
}

// facts are what is known of a run beside what watchers were told.
type facts struct {
	subject      *subject
	stored       map[fact]int
	acknowledged map[fact]int
	ofKey        map[string]storedOf
}

func gatherFacts(s *subject) facts {
	k := facts{subject: s, stored: map[fact]int{}, acknowledged: map[fact]int{}, ofKey: map[string]storedOf{}}
	for _, e := range s.run.Stored {
		k.stored[factOfEntry(e)]++
		h := k.ofKey[e.Key]
		h.subject, h.key, h.entries = s, e.Key, append(h.entries, e)
		k.ofKey[e.Key] = h
	}
	for _, op := range s.run.Ops {
		if changed(op) {
			k.acknowledged[fact{key: op.Key, act: actOf(op)}]++
		}
	}
	return k
}

// compare holds a stretch against the facts. Leases that ended by time are no facts: what
// [stretch.walk] demands of them follows from the changes.
func (k facts) compare(s *stretch, f *finding) {
	told, acts := map[fact]int{}, map[fact]int{}
	for _, w := range s.told {
		if w.Event == lease.Expired.String() {
			k.early(s, w, f)
			continue
		}
		of := factOf(w)
		told[of]++
		acts[of.withoutIndex()]++
		if told[of] > k.stored[of] && !k.excused(w, acts[of.withoutIndex()]) {
			f.violation(toldOnce(s, w))
		}
	}
	for _, e := range k.subject.run.Stored {
		of := factOfEntry(e)
		if e.Index <= s.from || e.Index > s.until || e.Op == lease.OpRenew && !s.renewals {
			continue
		}
		if told[of]--; told[of] < 0 {
			last := k.subject.run.Info.Length
			f.violation(Violation{Key: e.Key, From: last, Until: last, Text: s.watcher + " was not told what the stored history has: " + entryText(e)})
		}
	}
	for _, op := range k.subject.run.Ops {
		inside := op.Now.Millis() > s.began.Millis() && op.Now.Millis() < s.ended.Millis()
		if !changed(op) || !inside || op.Kind == history.Renew && !s.renewals {
			continue
		}
		of := fact{key: op.Key, act: actOf(op)}
		if acts[of]--; acts[of] < 0 {
			f.violation(by(s.watcher+" was not told what was acknowledged: "+model.Describe(op), op))
		}
	}
}

func toldOnce(s *stretch, w history.Watched) Violation {
	return heard(w, "%s was told %s, which the stored history does not have and should", s.watcher, toldText(w))
}

// excused reports whether w, the n-th of its kind, may be missing from the stored history
// and have happened all the same: it was trimmed, or came after the history was read.
func (k facts) excused(w history.Watched, n int) bool {
	if len(k.subject.run.Stored) == 0 {
		return true // which the check of the history says
	}
	h := k.ofKey[w.Key]
	h.subject, h.key = k.subject, w.Key
	of := factOf(w)
	recorded := len(k.subject.ops[w.Key]) > 0
	possible := !recorded || k.acknowledged[of.withoutIndex()] >= n ||
		h.perhapsDone(lease.Entry{Op: opOf(of.act.op), Owner: w.Owner, Epoch: w.Epoch})
	var latest, last uint64
	for _, e := range h.entries {
		latest, last = max(latest, e.Epoch), max(last, e.Index)
	}
	op := history.Op{Kind: of.act.op, Now: w.At}
	op.Record.Epoch = w.Epoch
	return possible && (w.Index > last || h.trimmed(op, latest))
}

func opOf(kind history.Kind) lease.Op {
	for _, op := range []lease.Op{lease.OpAcquire, lease.OpRenew, lease.OpRelease} {
		if op.String() == string(kind) {
			return op
		}
	}
	return lease.OpForget
}

// early tells of a lease that was told to have expired before an end that somebody was
// answered it has.
func (k facts) early(s *stretch, w history.Watched, f *finding) {
	for _, op := range k.subject.ops[w.Key] {
		grants := changed(op) && (op.Kind == history.Acquire || op.Kind == history.Renew)
		if grants && op.Record.Epoch == w.Epoch && op.Record.LeaseUntil.Millis() > w.LeaseUntil.Millis() {
			f.violation(by(s.watcher+" was told "+toldText(w)+", though it was longer: "+model.Describe(op), op))
			return
		}
	}
}
