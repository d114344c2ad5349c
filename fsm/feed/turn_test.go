package feed_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// noState has no leases.
type noState struct{}

func (noState) Leases(func(string, lease.Instant)) (uint64, lease.Instant, error) { return 0, 0, nil }

func (noState) Records(keys []string) ([]lease.Record, uint64, error) {
	return make([]lease.Record, len(keys)), 0, nil
}

// Watchers that are woken by an entry read all of it, and its index, at once: what says
// that more of it is to come could not be gone on after.
func TestAShortEntryIsReadAtOnce(t *testing.T) {
	const entries, watchers = 5_000, 4
	f := feed.Open(noState{}, feed.Bounds{})
	defer f.Close()
	var readers sync.WaitGroup
	for range watchers {
		w, err := f.Watch(feed.Selection{Prefix: "k"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			defer w.Close()
			deadline := time.After(time.Minute)
			for {
				batch, err := w.Next()
				switch {
				case err != nil || batch.More:
					t.Errorf("%d events up to %d, more: %v, %v", len(batch.Events), batch.Index, batch.More, err)
					return
				case batch.Index >= entries:
					return
				case len(batch.Events) > 0:
					continue
				}
				select {
				case <-w.Ready():
				case <-deadline:
					t.Errorf("no more after %d", batch.Index)
					return
				}
			}
		})
	}
	for i := range uint64(entries) {
		if err := f.Await(t.Context(), i); err != nil { // the readers wait for the next, too
			t.Fatal(err)
		}
		r := lease.Record{Key: fmt.Sprint("k", i), Owner: "o", Epoch: 1, LeaseUntil: 1 << 60}
		before := lease.Record{Key: r.Key}
		f.Add([]feed.Entry{{Index: i + 1, Now: lease.Instant(i), Changes: []feed.Change{{Op: lease.OpAcquire, Before: before, After: r}, {Op: lease.OpForget, Before: r, After: r}}}})
	}
	readers.Wait()
}
