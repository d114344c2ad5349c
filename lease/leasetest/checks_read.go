package leasetest

import (
	"fmt"
	"slices"

	"github.com/leasenode/leasenode/lease"
)

func readChecks() []Check {
	return []Check{
		{"a key that was never granted has epoch 0 and is no error", neverGranted},
		{"a stale read is answered", staleReads},
		{"a listing is in the order of the bytes, by a prefix of bytes", listByBytes},
		{"a listing of what is held leaves out what is over", listHeldOnly},
		{"the pages of a listing make up the whole", listPages},
	}
}

func neverGranted(t *trial) {
	a := t.claimant("a")
	untouched := func() {
		answer := a.read()
		equal(t, "key", answer.Record.Key, a.key)
		equal(t, "attributes", len(answer.Record.Attributes), 0)
		t.shows(answer, state{})
		equal(t, "number of entries", len(a.history()), 0)
		equal(t, "number listed", len(t.list(lease.ListRequest{Prefix: a.key})), 0)
	}
	untouched()
	for _, ask := range []func(uint64) (lease.Answer, error){a.renew, a.release, a.forget} {
		lost := t.lost(ask(1))
		equal(t, "key refused", lost.Record.Key, a.key)
		equal(t, "epoch refused", lost.Record.Epoch, 0)
		untouched()
	}
}

func staleReads(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	answer := t.done(do(t, "stale get", func() (lease.Answer, error) {
		return t.subject.Store.Get(t.ctx, lease.GetRequest{Key: a.key, Consistency: lease.Stale})
	}))
	equal(t, "key", answer.Record.Key, a.key)
	if answer.Record.Epoch > 1 {
		t.failf("want epoch 0 or 1, got %d", answer.Record.Epoch)
	}
	t.list(lease.ListRequest{Prefix: t.keys, Consistency: lease.Stale})
	t.history(lease.HistoryRequest{Key: a.key, Consistency: lease.Stale})
}

// list reads a whole listing, page by page, and returns its keys without what all
// keys of the run begin with.
func (t *trial) list(req lease.ListRequest) []string {
	var keys []string
	for {
		page, err := do(t, fmt.Sprintf("list %.20q", req.PageToken), func() (lease.ListPage, error) {
			return t.subject.Store.List(t.ctx, req)
		})
		if err != nil {
			t.failf("want a page, got %w", err)
			return nil
		}
		if req.PageSize > 0 && len(page.Answers) > req.PageSize {
			t.failf("want at most %d in a page, got %d", req.PageSize, len(page.Answers))
		}
		for _, answer := range page.Answers {
			equal(t, "now of a page's record, in ms,", answer.Now.Millis(), page.Now.Millis())
			keys = append(keys, claimant{t: t, key: answer.Record.Key}.shortKey())
		}
		if page.NextPageToken == "" {
			return keys
		}
		if page.NextPageToken == req.PageToken {
			t.failf("want another page, got the same token again")
		}
		req.PageToken = page.NextPageToken
	}
}

// sequence expects got to be want.
func (t *trial) sequence(what string, got, want []string) {
	if !slices.Equal(got, want) {
		t.failf("want %s %q, got %q", what, want, got)
	}
}

func listByBytes(t *trial) {
	// Longer names before the bytes that end them, capitals first, and U+FFFD before
	// an emoji, which the order of UTF-16 turns round.
	inOrder := []string{"B", "a", "a b", "a/", "a/b", "ab", "è", "é", "\ufffd", "😀"}
	shuffled := slices.Clone(inOrder)
	slices.Reverse(shuffled)
	for _, name := range shuffled {
		t.claimant("o").of(t.key(name)).granted(1)
	}
	for prefix, want := range map[string][]string{
		"":         inOrder,
		"a":        {"a", "a b", "a/", "a/b", "ab"},
		"a/":       {"a/", "a/b"},
		"ab":       {"ab"},
		"abc":      nil,
		"b":        nil,
		"\xc3":     {"è", "é"},
		"\xc3\xa9": {"é"},
		"\xf0\x9f": {"😀"},
	} {
		t.sequence(fmt.Sprintf("listing of %q", prefix), t.list(lease.ListRequest{Prefix: t.key(prefix)}), want)
	}
}

func listHeldOnly(t *trial) {
	a := t.claimant("a")
	for _, name := range []string{"held", "released", "renewed", "retaken"} {
		a.of(t.key(name)).granted(1)
	}
	a.of(t.key("expired")).forTTL(lease.MinTTL).granted(1)
	t.done(a.of(t.key("released")).release(1))
	t.done(a.of(t.key("retaken")).release(1))
	a.of(t.key("retaken")).granted(2)
	t.done(a.of(t.key("renewed")).forTTL(2 * ttl).renew(1))
	t.advance(lease.MinTTL)
	held := lease.ListRequest{Prefix: t.keys, Selection: lease.HeldOnly}
	t.sequence("held", t.list(held), []string{"held", "renewed", "retaken"})
	t.sequence("all", t.list(lease.ListRequest{Prefix: t.keys}), []string{"expired", "held", "released", "renewed", "retaken"})
	t.advance(ttl - lease.MinTTL)
	t.sequence("held at the end of the others", t.list(held), []string{"renewed"})
	t.advance(ttl)
	t.sequence("held at the end", t.list(held), nil)
}

func listPages(t *trial) {
	var want, held []string
	for i := range 12 {
		name := fmt.Sprintf("%02d", i)
		want = append(want, name)
		t.claimant("a").of(t.key(name)).granted(1)
		if i%3 == 0 {
			held = append(held, name)
		} else {
			t.done(t.claimant("a").of(t.key(name)).release(1))
		}
	}
	for _, size := range []int{1, 5, 6, 11, 12, 13, 0, lease.MaxPageSize} {
		all := lease.ListRequest{Prefix: t.keys, PageSize: size}
		t.sequence(fmt.Sprintf("listing by %d", size), t.list(all), want)
		all.Selection = lease.HeldOnly
		t.sequence(fmt.Sprintf("held by %d", size), t.list(all), held)
	}
}
