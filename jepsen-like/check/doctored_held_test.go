package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// heldOnly adds a key that holders had, of which no operation is recorded: two grants, of
// "h1" and "h2", stored after what the good run has without its last release.
func heldOnly(r *history.Run) {
	on := func(e lease.Entry) lease.Entry { e.Key = "held"; return e }
	r.Ops = slices.DeleteFunc(r.Ops, func(o history.Op) bool { return o.ID == 12 || o.ID == 13 || o.ID == 14 })
	r.Stored = append(r.Stored[:6:6], on(entry(17, lease.OpAcquire, "h1", 1, 20*ms)), on(entry(18, lease.OpAcquire, "h2", 2, 1100*ms)), on(entry(19, lease.OpRenew, "h2", 2, 1200*ms)))
	r.Records = []lease.Record{rec("c", 3, 4005*ms, 1), {Key: "held", Owner: "h2", Epoch: 2, LeaseUntil: at(2200 * ms)}}
	r.Beliefs = append(r.Beliefs,
		history.Belief{Holder: "h1", Key: "held", Epoch: 1, From: 30 * ms, Until: 1000 * ms},
		history.Belief{Holder: "h2", Key: "held", Epoch: 2, From: 1110 * ms, Until: 2000 * ms})
	r.Writes = append(r.Writes,
		history.Write{Seq: 1, Holder: "h1", Key: "held", Token: 1, At: 40 * ms, Accepted: true},
		history.Write{Seq: 2, Holder: "h2", Key: "held", Token: 2, At: 1120 * ms, Accepted: true})
}

// A history that has forgotten the oldest grants says nothing against who had them.
func TestAHoldersGrantMayBeForgotten(t *testing.T) {
	for name, doctored := range map[string]doctor{
		"nothing is": heldOnly,
		"the oldest is": all(heldOnly, func(r *history.Run) {
			r.Stored = append(r.Stored[:6:6], r.Stored[7:]...)
			for epoch := uint64(3); epoch <= 17; epoch++ {
				e := entry(20+epoch, lease.OpAcquire, "h2", epoch, time.Duration(1300+epoch)*ms)
				e.Key = "held"
				r.Stored = append(r.Stored, e)
			}
			r.Records[1].Epoch = 17
		}),
	} {
		run := goodRun()
		doctored(&run)
		if v := check.Judge(run, check.Options{Skip: map[string]string{"watched": "nobody watches"}}); v.Status() != check.Pass {
			t.Errorf("%s: %s", name, v.Summary())
		}
	}
}

func nobodyWatched(r *history.Run) { r.Watched = nil }
