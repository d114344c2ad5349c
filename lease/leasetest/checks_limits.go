package leasetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func limitChecks() []Check {
	return []Check{
		{"keys are held to their limits", keyLimits},
		{"owners are held to their limits", ownerLimits},
		{"request ids are held to their limits", requestIDLimits},
		{"ttls are held to their limits, to the millisecond", ttlLimits},
		{"attributes are held to their limits", attributeLimits},
		{"epochs are held to their limits", epochLimits},
		{"pages, prefixes and page tokens are held to their limits", pageLimits},
	}
}

// badText is what no key, owner, request id or attribute may contain.
func badText() []string {
	return []string{"\x00", "a\x00b", "a\n", "\ta", "a\x7f", "a\u0085", "a\xff", "a\xed\xa0\x80", "\xc0\x80", "a\xe7\x94"}
}

func keyLimits(t *trial) {
	longest := t.keys + strings.Repeat("x", lease.MaxKeyBytes-len(t.keys))
	good := t.claimant("a")
	good.of(longest).granted(1)
	t.done(good.of(longest).renew(1))
	bad := []string{"", longest + "x", longest[:len(longest)-1] + "é"}
	for _, text := range badText() {
		bad = append(bad, t.key(text))
	}
	for _, key := range bad {
		t.part(fmt.Sprintf("key of %d bytes, %.20q", len(key), strings.TrimPrefix(key, t.keys)), func(t *trial) {
			c := t.claimant("a").of(key)
			t.refusedEverywhere("key", c)
			_, err := do(t, "get", func() (lease.Answer, error) { return t.subject.Store.Get(t.ctx, lease.GetRequest{Key: key}) })
			t.invalid("key", err)
			if key == "" {
				return // asks for the history of all keys
			}
			_, err = do(t, "history", func() (lease.HistoryPage, error) {
				return t.subject.Store.History(t.ctx, lease.HistoryRequest{Key: key})
			})
			t.invalid("key", err)
		})
	}
	t.sequence("keys granted", t.list(lease.ListRequest{Prefix: t.keys}), []string{claimant{t: t, key: longest}.shortKey()})
}

// refusedEverywhere expects every mutation that c asks for to be refused.
func (t *trial) refusedEverywhere(field string, c claimant) {
	_, err := c.acquire()
	t.invalid(field, err)
	for _, ask := range []func(uint64) (lease.Answer, error){c.renew, c.release, c.forget} {
		_, err := ask(1)
		t.invalid(field, err)
	}
}

func ownerLimits(t *trial) {
	good := []string{"a", " a ", strings.Repeat("o", lease.MaxOwnerBytes), strings.Repeat("é", lease.MaxOwnerBytes/2)}
	for i, owner := range good {
		c := t.claimant(owner).of(t.key(fmt.Sprint(i)))
		c.granted(1)
		t.done(c.renew(1))
		t.done(c.forget(1))
		t.done(c.release(1))
	}
	bad := append(badText(), "", " ", "\u00a0\u2003", strings.Repeat("o", lease.MaxOwnerBytes+1), strings.Repeat("é", lease.MaxOwnerBytes/2)+"o")
	for _, owner := range bad {
		t.part(fmt.Sprintf("owner of %d bytes, %.20q", len(owner), owner), func(t *trial) {
			t.refusedEverywhere("owner", t.claimant(owner))
			t.shows(t.claimant("a").read(), state{})
		})
	}
}

func requestIDLimits(t *trial) {
	for _, id := range []string{"i", strings.Repeat("i", lease.MaxRequestIDBytes)} {
		c := t.claimant("a").of(t.key(fmt.Sprint(len(id)))).attempt(id)
		c.granted(1)
		equal(t, "changed", t.done(c.acquire()).Changed, false)
	}
	for _, id := range append(badText(), strings.Repeat("i", lease.MaxRequestIDBytes+1)) {
		t.part(fmt.Sprintf("request id of %d bytes, %.20q", len(id), id), func(t *trial) {
			_, err := t.claimant("a").attempt(id).acquire()
			t.invalid("request_id", err)
			t.shows(t.claimant("a").read(), state{})
		})
	}
}

func ttlLimits(t *trial) {
	for _, length := range []time.Duration{lease.MinTTL, lease.MinTTL + time.Millisecond, lease.MaxTTL} {
		c := t.claimant("a").of(t.key(length.String())).forTTL(length)
		c.granted(1)
		t.advance(time.Millisecond)
		t.shows(t.done(c.renew(1)), state{owner: "a", epoch: 1, left: length})
	}
	for _, length := range []time.Duration{
		lease.MinTTL - time.Millisecond, lease.MinTTL - 1, lease.MinTTL + 1, lease.MaxTTL + 1, lease.MaxTTL + time.Millisecond,
		0, 1, -1, -time.Second, time.Second + time.Microsecond, math.MaxInt64, math.MinInt64,
	} {
		t.part(fmt.Sprintf("ttl %v", length), func(t *trial) {
			c := t.claimant("a")
			_, err := c.forTTL(length).acquire()
			t.invalid("ttl", err)
			t.shows(c.read(), state{})
			c.granted(1)
			_, err = c.forTTL(length).renew(1)
			t.invalid("ttl", err)
			t.shows(c.read(), state{owner: "a", epoch: 1, left: ttl})
		})
	}
}

func attributeLimits(t *trial) {
	pairs := func(n, bytes int) map[string]string {
		attributes := map[string]string{}
		for i := range n {
			attributes[fmt.Sprintf("%05d", i)] = strings.Repeat("v", bytes-5)
		}
		return attributes
	}
	most := pairs(lease.MaxAttributes, lease.MaxAttributeBytes/lease.MaxAttributes)
	t.attributes(t.claimant("a").with(most).granted(1), most)
	t.attributes(t.claimant("a").read(), most)
	bad := map[string]map[string]string{
		"33 pairs":     pairs(lease.MaxAttributes+1, 6),
		"10000 pairs":  pairs(10_000, 6),
		"4097 bytes":   {"n": strings.Repeat("v", lease.MaxAttributeBytes)},
		"without name": {"": "v"},
	}
	for _, text := range badText() {
		bad[fmt.Sprintf("name %q", text)] = map[string]string{text: "v"}
		bad[fmt.Sprintf("value %q", text)] = map[string]string{"n": text}
	}
	for what, attributes := range bad {
		t.part(what, func(t *trial) {
			c := t.claimant("a").with(attributes)
			_, err := c.acquire()
			t.invalid("attributes", err)
			t.shows(c.read(), state{})
		})
	}
}

func epochLimits(t *trial) {
	c := t.claimant("a")
	c.granted(1)
	for _, ask := range []func(uint64) (lease.Answer, error){c.renew, c.release, c.forget} {
		t.lost(ask(lease.MaxEpoch))
		for _, epoch := range []uint64{0, lease.MaxEpoch + 1, math.MaxUint64} {
			_, err := ask(epoch)
			t.invalid("epoch", err)
		}
	}
	t.shows(c.read(), state{owner: "a", epoch: 1, left: ttl})
}

func pageLimits(t *trial) {
	listing := func(req lease.ListRequest) error {
		_, err := do(t, fmt.Sprintf("list by %d", req.PageSize), func() (lease.ListPage, error) { return t.subject.Store.List(t.ctx, req) })
		return err
	}
	history := func(req lease.HistoryRequest) error {
		_, err := do(t, fmt.Sprintf("history by %d", req.PageSize), func() (lease.HistoryPage, error) { return t.subject.Store.History(t.ctx, req) })
		return err
	}
	key := t.key("k")
	for _, size := range []int{1, lease.MaxPageSize} {
		t.done(lease.Answer{}, listing(lease.ListRequest{Prefix: key, PageSize: size}))
		t.done(lease.Answer{}, history(lease.HistoryRequest{Key: key, PageSize: size}))
	}
	for _, size := range []int{-1, lease.MaxPageSize + 1, math.MinInt32, math.MaxInt32} {
		t.invalid("page_size", listing(lease.ListRequest{Prefix: key, PageSize: size}))
		t.invalid("page_size", history(lease.HistoryRequest{Key: key, PageSize: size}))
	}
	for _, token := range []string{"made up", "=", "\u00e9", strings.Repeat("x", 5000)} {
		t.invalid("page_token", listing(lease.ListRequest{Prefix: key, PageToken: token}))
		t.invalid("page_token", history(lease.HistoryRequest{Key: key, PageToken: token}))
	}
	t.done(lease.Answer{}, listing(lease.ListRequest{Prefix: strings.Repeat("p", lease.MaxKeyBytes)}))
	t.invalid("prefix", listing(lease.ListRequest{Prefix: strings.Repeat("p", lease.MaxKeyBytes+1)}))
}
