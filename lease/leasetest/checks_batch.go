package leasetest

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func batchChecks() []Check {
	return []Check{
		{"a batch of renewals has its outcomes in order, each on its own", batchInOrder},
		{"renewals of one key in a batch are decided in order", batchOfOneKey},
		{"a batch has at most 1000 renewals", batchSize},
	}
}

// batch renews and expects as many outcomes.
func (t *trial) batch(reqs ...lease.RenewRequest) []lease.Outcome {
	outcomes, err := do(t, fmt.Sprintf("batch of %d renewals", len(reqs)), func() ([]lease.Outcome, error) {
		return t.subject.Store.BatchRenew(t.ctx, reqs)
	})
	if err != nil {
		t.failf("want an outcome of each renewal, got %w", err)
	}
	equal(t, "number of outcomes", len(outcomes), len(reqs))
	if t.err != nil {
		return make([]lease.Outcome, len(reqs))
	}
	return outcomes
}

func batchInOrder(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	keys := []string{t.key("1"), t.key("2"), t.key("3"), t.key("never"), t.key("over")}
	for _, key := range keys[:3] {
		a.of(key).granted(1)
	}
	a.of(keys[4]).forTTL(lease.MinTTL).granted(1)
	t.advance(ttl / 2)
	out := t.batch(
		a.of(keys[2]).renewal(1),
		b.of(keys[1]).renewal(1),
		a.of(keys[3]).renewal(1),
		a.of(keys[0]).forTTL(time.Minute).renewal(1),
		a.of(keys[1]).forTTL(0).renewal(1),
		a.of(keys[4]).renewal(1),
		a.of(keys[1]).renewal(1),
	)
	t.renewed(out[0], keys[2], ttl)
	equal(t, "key refused", t.lost(out[1].Answer, out[1].Err).Record.Key, keys[1])
	equal(t, "key never granted", t.lost(out[2].Answer, out[2].Err).Record.Key, keys[3])
	t.renewed(out[3], keys[0], time.Minute)
	t.invalid("ttl", out[4].Err)
	equal(t, "key that is over", t.lost(out[5].Answer, out[5].Err).Record.Key, keys[4])
	t.renewed(out[6], keys[1], ttl)
	t.shows(a.of(keys[0]).read(), state{owner: "a", epoch: 1, left: time.Minute})
	t.shows(a.of(keys[1]).read(), state{owner: "a", epoch: 1, left: ttl})
}

func (t *trial) renewed(out lease.Outcome, key string, left time.Duration) {
	answer := t.done(out.Answer, out.Err)
	equal(t, "key renewed", answer.Record.Key, key)
	t.changed(answer)
	t.shows(answer, state{owner: "a", epoch: 1, left: left})
}

func batchOfOneKey(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	t.advance(time.Second)
	out := t.batch(a.renewal(1), a.forTTL(time.Minute).renewal(1), a.renewal(2), a.forTTL(time.Minute).renewal(1))
	t.renewed(out[0], a.key, ttl)
	t.renewed(out[1], a.key, time.Minute)
	t.lost(out[2].Answer, out[2].Err)
	equal(t, "changed", t.done(out[3].Answer, out[3].Err).Changed, false)
	t.shows(a.read(), state{owner: "a", epoch: 1, left: time.Minute})
}

func batchSize(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	t.batch()
	t.advance(time.Second)
	reqs := make([]lease.RenewRequest, lease.MaxBatchRenew)
	for i := range reqs {
		reqs[i] = a.renewal(1)
	}
	for _, out := range t.batch(reqs...) {
		t.shows(t.done(out.Answer, out.Err), state{owner: "a", epoch: 1, left: ttl})
	}
	t.advance(time.Second)
	_, err := do(t, "batch of one too many", func() ([]lease.Outcome, error) {
		return t.subject.Store.BatchRenew(t.ctx, append(reqs, a.renewal(1)))
	})
	t.invalid("renewals", err)
	t.shows(a.read(), state{owner: "a", epoch: 1, left: ttl - time.Second})
}
