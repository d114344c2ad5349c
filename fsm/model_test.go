package fsm_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
	"pgregory.net/rapid"
)

// The bounds in the property tests: small, so that they are met.
var modelSettings = fsm.Settings{MaxKeys: 3, HistoryGrants: 2, HistoryRenewals: 2, HistoryOperations: 6}

// model is the rules, said again in as few words as possible.
type model struct {
	now  lease.Instant
	keys map[string]*modelKey
}

type modelKey struct {
	lease.Record
	attempts [][2]string // owner and request id of each grant
}

// decide returns what became of m, and for a grant whether it changed something.
func (w *model) decide(m lease.Mutation) (verdict string, remaining time.Duration) {
	if m.Validate() != nil {
		return "invalid", 0
	}
	k := w.keys[m.Key]
	if k == nil {
		k = &modelKey{}
	}
	held, mine := w.now < k.LeaseUntil, k.Epoch > 0 && k.Owner == m.Owner && k.Epoch == m.Epoch
	left := max(0, k.LeaseUntil.Sub(w.now))
	attempt := [2]string{m.Owner, m.RequestID}
	switch {
	case m.Op == lease.OpAcquire && m.RequestID != "" && held && k.attempts[len(k.attempts)-1] == attempt:
		return "found", min(left, m.TTL)
	case m.Op == lease.OpAcquire && m.RequestID != "" && slices.Contains(k.attempts[max(0, len(k.attempts)-int(modelSettings.HistoryGrants)):], attempt):
		return "lost", left
	case m.Op == lease.OpAcquire && held:
		return "held", left
	case m.Op == lease.OpAcquire && k.Epoch == 0 && len(w.keys) == int(modelSettings.MaxKeys):
		return "exhausted", 0
	case m.Op == lease.OpAcquire:
		k.attempts = append(k.attempts, attempt)
		k.Record = lease.Record{Key: m.Key, Owner: m.Owner, Epoch: k.Epoch + 1, LeaseUntil: w.now.Add(m.TTL), ForgottenAtEpoch: k.ForgottenAtEpoch}
		w.keys[m.Key] = k
		return "done", m.TTL
	case !mine || m.Op != lease.OpRelease && !held:
		return "lost", left
	case m.Op == lease.OpRenew && w.now.Add(m.TTL) > k.LeaseUntil:
		k.LeaseUntil = w.now.Add(m.TTL)
		return "done", m.TTL
	case m.Op == lease.OpRelease && held:
		k.LeaseUntil = w.now
		return "done", 0
	case m.Op == lease.OpForget && k.ForgottenAtEpoch < k.Epoch:
		k.ForgottenAtEpoch = k.Epoch
		return "done", left
	case m.Op == lease.OpRenew:
		return "found", min(left, m.TTL)
	default:
		return "found", left
	}
}

func verdictOf(o lease.Outcome) (string, time.Duration) {
	switch err := o.Err.(type) {
	case nil:
		if o.Answer.Changed {
			return "done", o.Answer.Remaining
		}
		return "found", o.Answer.Remaining
	case *lease.HeldError:
		return "held", err.Remaining
	case *lease.LostError:
		return "lost", err.Remaining
	case *lease.ExhaustedError:
		return "exhausted", 0
	case *lease.InvalidError:
		return "invalid", 0
	default:
		return err.Error(), 0
	}
}

func drawMutation(t *rapid.T) lease.Mutation {
	m := lease.Mutation{
		Op:    lease.Op(rapid.IntRange(1, 4).Draw(t, "op")),
		Key:   rapid.SampledFrom([]string{"a", "a/", "b", "c"}).Draw(t, "key"),
		Owner: rapid.SampledFrom([]string{"x", "x", "y"}).Draw(t, "owner"),
	}
	if m.Op == lease.OpAcquire {
		m.RequestID = rapid.SampledFrom([]string{"", "r1", "r2", "r3"}).Draw(t, "request id")
	} else {
		m.Epoch = rapid.Uint64Range(0, 4).Draw(t, "epoch")
	}
	if m.Op <= lease.OpRenew {
		m.TTL = rapid.SampledFrom([]time.Duration{99, 100, 500, 1000}).Draw(t, "ttl") * time.Millisecond
	}
	return m
}

// drawLog returns a log that begins with an opening, and the batches in it by
// index; those that must be refused for their term are left out.
func drawLog(t *rapid.T) ([]*raft.Log, map[uint64][]lease.Mutation) {
	var logs []*raft.Log
	batches := map[uint64][]lease.Mutation{}
	index, term, since := uint64(0), uint64(0), time.Duration(0)
	add := func(kind raft.LogType, data []byte) {
		index++
		logs = append(logs, &raft.Log{Index: index, Term: term, Type: kind, Data: data})
	}
	for range rapid.IntRange(1, 40).Draw(t, "entries") {
		what := rapid.IntRange(0, 19).Draw(t, "kind")
		if what == 0 || term == 0 {
			term++
			add(raft.LogCommand, fsm.EncodeOpening(fsm.Opening{Wall: began.Add(time.Duration(index) * time.Hour), Settings: modelSettings}))
			continue
		}
		if what == 1 {
			add(raft.LogConfiguration, nil)
			continue
		}
		if what == 2 {
			index += 40 // what raft keeps to itself
		}
		since += time.Duration(rapid.IntRange(-300, 900).Draw(t, "step")) * time.Millisecond
		since = max(since, 0)
		stamp := fsm.Stamp{Reading: instant(since), Term: term, Wall: began.Add(-since)}
		mutations := rapid.SliceOfN(rapid.Custom(drawMutation), 0, 5).Draw(t, "mutations")
		if what == 3 {
			stamp.Term--
		} else {
			batches[index+1] = mutations
		}
		add(raft.LogCommand, batch(stamp, mutations...))
	}
	return logs, batches
}

func TestRulesAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		logs, batches := drawLog(rt)
		m := newMachine(t)
		w := &model{now: instant(0), keys: map[string]*modelKey{}}
		for _, log := range logs {
			response := m.Apply(log)
			mutations, ok := batches[log.Index]
			if ok {
				stamp, _, err := fsm.DecodeBatch(log.Data)
				if err != nil {
					rt.Fatal(err)
				}
				w.now = max(w.now, stamp.Reading)
				compareWithModel(rt, w, mutations, response.([]lease.Outcome))
			} else if log.Type == raft.LogCommand {
				if _, ok := response.([]lease.Outcome); ok {
					rt.Fatalf("entry %d was applied: %v", log.Index, response)
				}
			}
		}
		checkHistories(rt, m, w)
		if err := m.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

func compareWithModel(t *rapid.T, w *model, mutations []lease.Mutation, outcomes []lease.Outcome) {
	for i, mutation := range mutations {
		want, wantRemaining := w.decide(mutation)
		got, remaining := verdictOf(outcomes[i])
		if got != want || remaining != wantRemaining {
			t.Fatalf("%+v: %s with %v left, want %s with %v", mutation, got, remaining, want, wantRemaining)
		}
		if outcomes[i].Err != nil {
			continue
		}
		if a := outcomes[i].Answer; !reflect.DeepEqual(a.Record, w.keys[mutation.Key].Record) || a.Now != w.now {
			t.Fatalf("%+v: got %+v, want %+v at %d", mutation, a, w.keys[mutation.Key].Record, w.now)
		}
	}
}

// checkHistories looks at each key as it is in the end, and at what is remembered.
func checkHistories(t *rapid.T, m *machine, w *model) {
	for key, k := range w.keys {
		view, err := m.Get(key)
		if err != nil || !reflect.DeepEqual(view, fsm.View{Record: k.Record, Now: w.now}) {
			t.Fatalf("got %v, %v; want %v", view, err, k.Record)
		}
		grants, renewals := uint64(0), uint64(0)
		for _, e := range m.history(key, 3) {
			switch e.Op {
			case lease.OpAcquire:
				grants++
			case lease.OpRenew:
				renewals++
			}
			if want := k.Epoch - min(k.Epoch, modelSettings.HistoryGrants) + grants; e.Epoch != want {
				t.Fatalf("an entry of epoch %d after %d grants at %d", e.Epoch, grants, k.Epoch)
			}
			if e.Op == lease.OpAcquire && e.Owner != k.attempts[e.Epoch-1][0] {
				t.Fatalf("epoch %d of %q", e.Epoch, e.Owner)
			}
		}
		if grants != min(k.Epoch, modelSettings.HistoryGrants) || renewals > modelSettings.HistoryRenewals {
			t.Fatalf("%d grants and %d renewals are remembered of epoch %d", grants, renewals, k.Epoch)
		}
	}
}
