package leasetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func historyChecks() []Check {
	return []Check{
		{"history tells every granted operation in order", historyInOrder},
		{"operations that were refused or changed nothing leave no entry", historyOfChangesOnly},
		{"the history of all keys tells the same, in one order", historyOfAllKeys},
		{"the pages of a history make up the whole", historyPages},
		{"of a key's grants the latest are kept, each whole", keptGrants},
		{"of a key's renewals the latest are kept, and no grant leaves for them", keptRenewals},
	}
}

// history reads a whole history, page by page, and returns its entries below this
// run's keys.
func (t *trial) history(req lease.HistoryRequest) []lease.Entry {
	var entries []lease.Entry
	for {
		page, err := do(t, fmt.Sprintf("history %.20q", req.PageToken), func() (lease.HistoryPage, error) {
			return t.subject.Store.History(t.ctx, req)
		})
		if err != nil {
			t.failf("want a page, got %w", err)
			return nil
		}
		if req.PageSize > 0 && len(page.Entries) > req.PageSize {
			t.failf("want at most %d in a page, got %d", req.PageSize, len(page.Entries))
		}
		for _, e := range page.Entries {
			if strings.HasPrefix(e.Key, t.keys) {
				entries = append(entries, e)
			}
		}
		if page.NextPageToken == "" {
			return entries
		}
		if page.NextPageToken == req.PageToken {
			t.failf("want another page, got the same token again")
		}
		req.PageToken = page.NextPageToken
	}
}

// told returns entries as words, with the clock in ms after the first grant.
func (t *trial) told(entries []lease.Entry) []string {
	var words []string
	for _, e := range entries {
		words = append(words, fmt.Sprintf("%s %s %s %d @%d", e.Op, claimant{t: t, key: e.Key}.shortKey(), e.Owner, e.Epoch, e.At.Millis()-entries[0].At.Millis()))
	}
	return words
}

func historyInOrder(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	t.advance(time.Second)
	t.done(a.renew(1))
	t.done(a.forget(1))
	t.advance(time.Second)
	t.done(a.release(1))
	b.granted(2)
	t.advance(ttl)
	a.granted(3)
	entries := a.history()
	t.sequence("history", t.told(entries), []string{
		"acquire k a 1 @0", "renew k a 1 @1000", "forget k a 1 @1000", "release k a 1 @2000", "acquire k b 2 @2000", "acquire k a 3 @12000",
	})
	for i := 1; i < len(entries); i++ {
		if entries[i].Index < entries[i-1].Index {
			t.failf("want indexes that never go back, got %d after %d", entries[i].Index, entries[i-1].Index)
		}
	}
}

func historyOfChangesOnly(t *trial) {
	a := t.changesBesideRefusals()
	t.sequence("history", t.told(a.history()), []string{"acquire k a 1 @0", "forget k a 1 @0", "release k a 1 @0"})
}

// changesBesideRefusals has a key acquired, forgotten and released by the claimant that it
// returns, and beside that all that changes nothing.
func (t *trial) changesBesideRefusals() claimant {
	a, b := t.claimant("a").attempt("one"), t.claimant("b")
	a.granted(1)
	t.done(a.acquire())
	t.held(b.acquire())
	t.lost(b.renew(1))
	t.lost(b.release(1))
	t.lost(b.forget(1))
	t.done(a.renew(1))
	t.done(a.forTTL(time.Second).renew(1))
	t.done(a.forget(1))
	t.done(a.forget(1))
	t.done(a.release(1))
	t.done(a.release(1))
	t.lost(a.acquire())
	return a
}

func historyOfAllKeys(t *trial) {
	one, two := t.claimant("a").of(t.key("one")), t.claimant("b").of(t.key("two"))
	one.granted(1)
	two.granted(1)
	t.advance(time.Second)
	t.batch(two.renewal(1), one.renewal(1))
	t.done(two.forget(1))
	t.done(one.release(1))
	one.granted(2)
	want := []string{
		"acquire one a 1 @0", "acquire two b 1 @0", "renew two b 1 @1000", "renew one a 1 @1000",
		"forget two b 1 @1000", "release one a 1 @1000", "acquire one a 2 @1000",
	}
	all := t.history(lease.HistoryRequest{PageSize: lease.MaxPageSize})
	t.sequence("history of all keys", t.told(all), want)
	for _, c := range []claimant{one, two} {
		var part []lease.Entry
		for _, e := range all {
			if e.Key == c.key {
				part = append(part, e)
			}
		}
		t.sequence("history of one key", t.told(c.history()), t.told(part))
	}
}

func historyPages(t *trial) {
	a := t.claimant("a")
	var want []string
	for epoch := uint64(1); epoch <= uint64(min(6, t.subject.Kept.Grants)); epoch++ {
		a.granted(epoch)
		t.done(a.release(epoch))
		want = append(want, fmt.Sprintf("acquire k a %d @0", epoch), fmt.Sprintf("release k a %d @0", epoch))
	}
	for _, size := range []int{1, 5, len(want) - 1, len(want), len(want) + 1, 0, lease.MaxPageSize} {
		got := t.history(lease.HistoryRequest{Key: a.key, PageSize: size})
		t.sequence(fmt.Sprintf("history by %d", size), t.told(got), want)
	}
}

func keptGrants(t *trial) {
	a := t.claimant("a")
	kept, dropped := t.subject.Kept.Grants, 3
	var want []string
	for epoch := 1; epoch <= kept+dropped; epoch++ {
		a.granted(uint64(epoch))
		t.done(a.forget(uint64(epoch)))
		t.done(a.release(uint64(epoch)))
		if epoch > dropped {
			for _, op := range []lease.Op{lease.OpAcquire, lease.OpForget, lease.OpRelease} {
				want = append(want, fmt.Sprintf("%s k a %d @0", op, epoch))
			}
		}
	}
	t.sequence("history", t.told(a.history()), want)
}

func keptRenewals(t *trial) {
	a := t.claimant("a")
	kept, grants := t.subject.Kept.Renewals, t.subject.Kept.Grants
	var want []string
	now := 0
	for epoch := 1; epoch <= grants; epoch++ {
		a.granted(uint64(epoch))
		want = append(want, fmt.Sprintf("acquire k a %d @%d", epoch, now))
		// The first of these renewals leave; the last epoch alone has as many as stay.
		for range kept {
			t.advance(time.Millisecond)
			now++
			t.done(a.renew(uint64(epoch)))
			if epoch == grants {
				want = append(want, fmt.Sprintf("renew k a %d @%d", epoch, now))
			}
		}
		if epoch < grants {
			t.done(a.release(uint64(epoch)))
			want = append(want, fmt.Sprintf("release k a %d @%d", epoch, now))
		}
	}
	t.sequence("history", t.told(a.history()), want)
}
