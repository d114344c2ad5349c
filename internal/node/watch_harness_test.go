package node_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// watched is what a watch has told.
type watched struct {
	events   []lease.Event
	records  map[string]lease.Record // of the latest listing
	synced   lease.Position
	position lease.Position
	// positions are all that were told.
	positions []lease.Position
}

// watchTo reads a watch until its position is index at least.
func (c *cluster) watchTo(client *holder.Client, req lease.WatchRequest, index uint64) (*watched, error) {
	w := &watched{position: req.After}
	for u, err := range client.Watch(c.within(time.Minute), req) {
		if err != nil {
			return w, err
		}
		w.take(u)
		if w.position.Index >= index {
			break
		}
	}
	return w, nil
}

func (w *watched) take(u lease.WatchUpdate) {
	if u.Reset {
		w.records = map[string]lease.Record{}
	}
	for _, r := range u.Records {
		w.records[r.Key] = r
	}
	if u.Synced {
		w.synced = u.Position
	}
	w.events = append(w.events, u.Events...)
	if u.Position != (lease.Position{}) {
		w.position = u.Position
		w.positions = append(w.positions, u.Position)
	}
}

func (c *cluster) mustWatchTo(client *holder.Client, req lease.WatchRequest, index uint64) *watched {
	c.t.Helper()
	w, err := c.watchTo(client, req, index)
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// here returns the position as it is now.
func (c *cluster) here(client *holder.Client) lease.Position {
	c.t.Helper()
	return c.mustWatchTo(client, lease.WatchRequest{}, 0).position
}

// live does all there is to do to keys, a few times each, and leaves some leases to end.
func (c *cluster) live(client *holder.Client, prefix string, keys int) {
	c.t.Helper()
	ctx := c.within(time.Minute)
	check := func(_ lease.Answer, err error) {
		if err != nil {
			c.t.Errorf("%s: %v", prefix, err)
		}
	}
	for i := range keys {
		key := fmt.Sprintf("%s/%d", prefix, i)
		a, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "o", TTL: 30 * time.Second, Attributes: map[string]string{"addr": "h:1", "v": "2"}})
		check(a, err)
		epoch := a.Record.Epoch
		check(client.Renew(ctx, lease.RenewRequest{Key: key, Owner: "o", Epoch: epoch, TTL: time.Minute}))
		check(client.Forget(ctx, lease.ForgetRequest{Key: key, Owner: "o", Epoch: epoch}))
		check(client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: "o", Epoch: epoch}))
		check(client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "p", TTL: lease.MinTTL}))
	}
}

// checkHistory holds that the events of keys with the prefix are exactly those that
// their history has, and the ends of the leases that nobody has released.
func (c *cluster) checkHistory(events []lease.Event, after uint64, keys []string) {
	c.t.Helper()
	client := c.dial()
	for _, key := range keys {
		page, err := client.History(c.within(20*time.Second), lease.HistoryRequest{Key: key, PageSize: lease.MaxPageSize})
		if err != nil {
			c.t.Fatal(err)
		}
		var want, got []string
		for _, e := range page.Entries {
			if e.Index > after {
				want = append(want, fmt.Sprintf("%d %v %s %d at %d", e.Index, lease.EventOf(e.Op), e.Owner, e.Epoch, e.At))
			}
		}
		until, held := lease.Instant(0), false
		for _, e := range events {
			if e.Record.Key != key {
				continue
			}
			if e.Kind == lease.Expired {
				if !held || until != e.Record.LeaseUntil || e.At < until {
					c.t.Errorf("%+v, but the lease was held: %v, until %d", e, held, until)
				}
				held = false
				continue
			}
			if held && e.Kind == lease.Acquired {
				c.t.Errorf("%+v while the lease had not ended", e)
			}
			until, held = e.Record.LeaseUntil, e.Kind != lease.Released
			got = append(got, fmt.Sprintf("%d %v %s %d at %d", e.Index, e.Kind, e.Record.Owner, e.Record.Epoch, e.At))
		}
		if !slices.Equal(got, want) {
			c.t.Errorf("%s:\n got %q\nwant %q", key, got, want)
		}
	}
}

func keysOf(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%d", prefix, i)
	}
	return keys
}

func until(events []lease.Event, index uint64) []lease.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e lease.Event) bool { return e.Index > index })
}

func count(events []lease.Event, kind lease.EventKind) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// checkListing holds that the events go on from the listing, and that both together
// make the final state.
func (c *cluster) checkListing(w *watched, final map[string]lease.Record, selection lease.Selection) {
	c.t.Helper()
	c.t.Logf("%d records at %d, %d events", len(w.records), w.synced.Index, len(w.events))
	if w.synced.Index == 0 || len(w.records) == 0 {
		c.t.Error("the listing was not completed")
	}
	state := maps.Clone(w.records)
	for _, e := range w.events {
		before := state[e.Record.Key]
		if selection == lease.HeldOnly && before.Epoch == 0 {
			before = e.Record // it was left out
			before.Epoch -= 1
			before.LeaseUntil = 0
		}
		switch {
		case e.Index <= w.synced.Index:
			c.t.Errorf("%+v after the listing of %v", e, w.synced)
		case e.Kind == lease.Acquired && e.Record.Epoch != before.Epoch+1,
			e.Kind != lease.Acquired && e.Record.Epoch != before.Epoch,
			e.Kind == lease.Acquired && !before.OverAt(e.At),
			e.Kind == lease.Expired && !reflect.DeepEqual(e.Record, before):
			c.t.Errorf("%+v comes after %+v", e, before)
		}
		state[e.Record.Key] = e.Record
	}
	for key, r := range final {
		if got, told := state[key]; !reflect.DeepEqual(got, r) && (told || selection == lease.AllRecords) {
			c.t.Errorf("%s is %+v, and in the end %+v", key, got, r)
		}
	}
}
