package holder

import (
	"context"
	"fmt"
	"iter"

	"github.com/leasenode/leasenode/lease"
)

// ObserveOption changes what [Client.Observe] tells.
type ObserveOption func(*observation)

// WithRenewals has renewals and forgets told too, so that Remaining is never older than
// the last renewal.
func WithRenewals() ObserveOption { return func(o *observation) { o.renewals = true } }

// Observe tells who owns key: as it is now, and again at each change of the owner, the
// epoch, or of whether the lease is held. Remaining is 0 if nobody holds it, and else as
// of the moment that is told about, on the cluster clock: a renewal may have made it more
// since, and time has made it less. It is no right to act. A key that was never granted
// has epoch 0. Between two values it can not be told from a key that nothing happens to
// that no node answers: see [WithLogger].
//
// It goes on until ctx ends or the key is no key; the last element then has an error
// and nothing else, as with [Client.Watch]: ctx's own, if that has ended. When it was
// cut off from all nodes for so long that what happened is not known in full, it goes on
// with what is.
func (c *Client) Observe(ctx context.Context, key string, options ...ObserveOption) iter.Seq2[lease.Answer, error] {
	return func(yield func(lease.Answer, error) bool) {
		o := observation{key: key}
		for _, option := range options {
			option(&o)
		}
		if err := lease.ValidateKey(key); err != nil {
			yield(lease.Answer{}, err)
			return
		}
		for u, err := range c.follow(ctx, lease.WatchRequest{Key: key, Renewals: o.renewals, Sync: true}, fmt.Sprintf("observe %q", key)) {
			if err != nil {
				yield(lease.Answer{}, err)
				return
			}
			for _, answer := range o.take(u) {
				if !yield(answer, nil) {
					return
				}
			}
		}
	}
}

// observation is what is known of one key.
type observation struct {
	key      string
	renewals bool

	listed lease.Record // of the listing that is under way
	told   *lease.Answer
}

// take returns what an update changes.
func (o *observation) take(u lease.WatchUpdate) (answers []lease.Answer) {
	tell := func(r lease.Record, now lease.Instant) {
		answer := lease.Answer{Record: r, Now: now, Remaining: r.RemainingAt(now)}
		if o.told == nil || o.renewals && answer.Record.LeaseUntil != o.told.Record.LeaseUntil || o.renewals && answer.Record.ForgottenAtEpoch != o.told.Record.ForgottenAtEpoch ||
			answer.Record.Epoch != o.told.Record.Epoch || (answer.Remaining > 0) != (o.told.Remaining > 0) {
			o.told = &answer
			answers = append(answers, answer)
		}
	}
	if u.Reset {
		o.listed = lease.Record{Key: o.key}
	}
	for _, r := range u.Records {
		o.listed = r
	}
	if u.Synced {
		tell(o.listed, u.Now)
	}
	for _, e := range u.Events {
		tell(e.Record, e.At)
	}
	return answers
}
