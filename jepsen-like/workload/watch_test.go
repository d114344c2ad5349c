package workload_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
	"github.com/leasenode/leasenode/lease"
)

// counting tells one event a second after the position that it is asked for, its index
// being the second, and lists nothing.
type counting struct{ began time.Time }

func (c counting) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		next := req.After.Index
		if next == 0 && !yield(lease.WatchUpdate{Reset: true, Synced: true, Position: lease.Position{ClusterID: "c", Index: 1}}, nil) {
			return
		}
		for next = max(next, 1) + 1; ; next++ {
			select {
			case <-time.After(time.Until(c.began.Add(time.Duration(next) * time.Second))):
			case <-ctx.Done():
				yield(lease.WatchUpdate{}, lease.ErrUnavailable)
				return
			}
			event := lease.Event{Kind: lease.Forgotten, Index: next}
			if !yield(lease.WatchUpdate{Events: []lease.Event{event}}, nil) ||
				!yield(lease.WatchUpdate{Position: lease.Position{ClusterID: "c", Index: next}}, nil) {
				return
			}
		}
	}
}

func TestWatchersTakeDownEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, store := history.NewRecorder(nil), counting{time.Now()}
		watchers := workload.StartWatchers(workload.WatchOptions{
			Seed: 3, Any: store, Now: sinceNow(), Sink: recorder,
			Endpoints: []workload.WatchEndpoint{{Node: "n1", Watcher: store}, {Node: "n2", Watcher: store}},
		})
		time.Sleep(30 * time.Second)
		watchers.Finish(t.Context(), 40)
		told, seqs, nodes := map[string]uint64{}, map[string]int{}, map[string]bool{}
		for _, w := range recorder.Run().Watched {
			if seqs[w.Watcher]++; w.Seq != seqs[w.Watcher] {
				t.Fatalf("%+v is out of order", w)
			}
			if w.Mark == history.WatchReset {
				told[w.Watcher] = w.Index
			}
			if w.Mark == history.WatchTold {
				if w.Index != told[w.Watcher]+1 {
					t.Fatalf("%+v comes after %d", w, told[w.Watcher])
				}
				told[w.Watcher], nodes[w.Node] = w.Index, true
			}
		}
		for watcher, last := range told {
			if last < 40 {
				t.Errorf("%s came to %d, want 40", watcher, last)
			}
		}
		if len(told) != 3 || !nodes["n1"] || !nodes["n2"] {
			t.Errorf("%v were told something, at %v", told, nodes)
		}
	})
}
