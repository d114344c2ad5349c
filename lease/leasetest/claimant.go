package leasetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// claimant asks for one key under one owner's name. It is a value: a check changes
// a copy to ask in another way.
type claimant struct {
	t          *trial
	key        string
	owner      string
	ttl        time.Duration
	requestID  string
	attributes map[string]string
}

// claimant returns one of the trial's usual key.
func (t *trial) claimant(owner string) claimant {
	return claimant{t: t, key: t.key("k"), owner: owner, ttl: ttl}
}

// of returns c asking for another key.
func (c claimant) of(key string) claimant {
	c.key = key
	return c
}

// forTTL returns c asking for another ttl.
func (c claimant) forTTL(ttl time.Duration) claimant {
	c.ttl = ttl
	return c
}

// attempt returns c asking with a request id.
func (c claimant) attempt(requestID string) claimant {
	c.requestID = requestID
	return c
}

// with returns c asking with attributes.
func (c claimant) with(attributes map[string]string) claimant {
	c.attributes = attributes
	return c
}

func (c claimant) acquire() (lease.Answer, error) {
	return do(c.t, c.step("acquire", 0), func() (lease.Answer, error) {
		return c.t.subject.Store.Acquire(c.t.ctx, lease.AcquireRequest{Key: c.key, Owner: c.owner, TTL: c.ttl, RequestID: c.requestID, Attributes: c.attributes})
	})
}

func (c claimant) renew(epoch uint64) (lease.Answer, error) {
	return do(c.t, c.step("renew", epoch), func() (lease.Answer, error) {
		return c.t.subject.Store.Renew(c.t.ctx, c.renewal(epoch))
	})
}

func (c claimant) renewal(epoch uint64) lease.RenewRequest {
	return lease.RenewRequest{Key: c.key, Owner: c.owner, Epoch: epoch, TTL: c.ttl}
}

func (c claimant) release(epoch uint64) (lease.Answer, error) {
	return do(c.t, c.step("release", epoch), func() (lease.Answer, error) {
		return c.t.subject.Store.Release(c.t.ctx, lease.ReleaseRequest{Key: c.key, Owner: c.owner, Epoch: epoch})
	})
}

func (c claimant) forget(epoch uint64) (lease.Answer, error) {
	return do(c.t, c.step("forget", epoch), func() (lease.Answer, error) {
		return c.t.subject.Store.Forget(c.t.ctx, lease.ForgetRequest{Key: c.key, Owner: c.owner, Epoch: epoch})
	})
}

// read returns what the store says of the key.
func (c claimant) read() lease.Answer {
	return c.t.done(do(c.t, fmt.Sprintf("get %q", c.shortKey()), func() (lease.Answer, error) {
		return c.t.subject.Store.Get(c.t.ctx, lease.GetRequest{Key: c.key})
	}))
}

// granted acquires and expects the grant of this epoch, for all of the ttl.
func (c claimant) granted(epoch uint64) lease.Answer {
	answer := c.t.done(c.acquire())
	equal(c.t, "key", answer.Record.Key, c.key)
	c.t.shows(answer, state{owner: c.owner, epoch: epoch, left: c.ttl, floor: answer.Record.ForgottenAtEpoch})
	c.t.changed(answer)
	return answer
}

// history returns what the store says was granted of the key.
func (c claimant) history() []lease.Entry {
	return c.t.history(lease.HistoryRequest{Key: c.key, PageSize: lease.MaxPageSize})
}

func (c claimant) step(op string, epoch uint64) string {
	step := fmt.Sprintf("%s %q by %.20q", op, c.shortKey(), c.owner)
	if epoch > 0 {
		step += fmt.Sprintf(" at epoch %d", epoch)
	} else if c.requestID != "" {
		step += fmt.Sprintf(" as %.20q", c.requestID)
	}
	if c.ttl != ttl {
		step += fmt.Sprintf(" for %v", c.ttl)
	}
	return step
}

// shortKey leaves out what all keys of the run begin with.
func (c claimant) shortKey() string {
	return fmt.Sprintf("%.40s", strings.TrimPrefix(c.key, c.t.keys))
}
