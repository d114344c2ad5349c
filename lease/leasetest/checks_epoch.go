package leasetest

import (
	"time"

	"github.com/leasenode/leasenode/lease"
)

func epochChecks() []Check {
	return []Check{
		{"the grant after an expiry has the next epoch", nextEpochAfterExpiry},
		{"the grant after a release has the next epoch", nextEpochAfterRelease},
		{"epochs start at 1, move by one and never repeat", epochsNeverRepeat},
		{"a superseded holder is refused everywhere", supersededIsRefused},
	}
}

func nextEpochAfterExpiry(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	t.advance(ttl + time.Hour)
	b.granted(2)
	t.advance(ttl)
	b.granted(3)
	t.shows(b.read(), state{owner: "b", epoch: 3, left: ttl})
}

func nextEpochAfterRelease(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	t.done(a.release(1))
	b.granted(2)
	t.done(b.release(2))
	b.granted(3)
	t.shows(b.read(), state{owner: "b", epoch: 3, left: ttl})
}

func epochsNeverRepeat(t *trial) {
	owners := []claimant{t.claimant("a"), t.claimant("b"), t.claimant("b"), t.claimant("c")}
	for i := range uint64(10) {
		owner, epoch := owners[i%4], i+1
		owner.granted(epoch)
		t.held(t.claimant("z").acquire())
		switch i % 3 {
		case 0:
			t.advance(ttl)
		case 1:
			t.done(owner.release(epoch))
		default:
			t.done(owner.renew(epoch))
			t.done(owner.forget(epoch))
			t.advance(2 * ttl)
			t.done(owner.release(epoch))
		}
	}
	equal(t, "epoch at the end", owners[0].read().Record.Epoch, 10)
}

func supersededIsRefused(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	t.advance(ttl)
	b.granted(2)
	t.advance(ttl / 2)
	for _, epoch := range []uint64{1, 2} {
		for _, ask := range []func(uint64) (lease.Answer, error){a.renew, a.release, a.forget} {
			lost := t.lost(ask(epoch))
			t.shows(lease.Answer{Record: lost.Record, Now: a.read().Now, Remaining: lost.Remaining}, state{owner: "b", epoch: 2, left: ttl / 2})
		}
	}
	t.held(a.acquire())
	t.shows(b.read(), state{owner: "b", epoch: 2, left: ttl / 2})
	t.done(b.renew(2))
	t.done(b.release(2))
	t.lost(a.release(1))
	t.lost(a.renew(1))
}
