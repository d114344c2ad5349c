package lease

import (
	"context"
	"time"
)

// Store grants leases. All methods are safe for concurrent use and obey their
// context. Errors, found with errors.As and errors.Is:
//
//   - [*InvalidError]: the request is outside a limit; nothing was proposed.
//   - [*ExhaustedError]: a limit of the store is reached; nothing was changed.
//   - [ErrUnavailable]: certainly not done.
//   - [ErrOutcomeUnknown]: a mutation that may have been done, including one whose
//     context ended after it was sent. Never returned by a read.
//
// and those that a method names. A mutation that returns nil error is durable on
// a majority of the nodes.
type Store interface {
	// Acquire grants the key if it was never granted or its lease is over: at the
	// next epoch, until ttl from now on the cluster clock. While anyone's lease is
	// unexpired, the caller's own included, it is refused with a [*HeldError].
	//
	// A repetition with the owner and request id of the current grant is answered
	// with that grant, unchanged, for as long as it lasts. One whose grant has
	// ended, as far as the key's history remembers, is refused with a [*LostError].
	// Without a request id every call is an attempt of its own.
	//
	// With a Wait, it joins the line of those who wait for the key, first come, first
	// served, and is refused only when the wait is over; see [AcquireRequest.Wait].
	Acquire(ctx context.Context, req AcquireRequest) (Answer, error)

	// Renew moves the end of the lease to ttl from now if that is later. It keeps
	// the epoch. If owner and epoch are not those of an unexpired lease, it is
	// refused with a [*LostError].
	Renew(ctx context.Context, req RenewRequest) (Answer, error)

	// BatchRenew renews up to [MaxBatchRenew] leases. The result has an outcome for
	// each request, in order; the error is for the call as a whole, and then says
	// nothing of any of them beyond what its code says.
	BatchRenew(ctx context.Context, reqs []RenewRequest) ([]Outcome, error)

	// Release ends the lease now. Releasing one's own finished lease succeeds and
	// changes nothing; once another epoch exists, or for another owner, it is
	// refused with a [*LostError]. If somebody waits for the key, the lease of the first
	// in line begins where this one ends.
	Release(ctx context.Context, req ReleaseRequest) (Answer, error)

	// Forget sets the forgotten floor to the epoch of an unexpired lease; else it is
	// refused with a [*LostError].
	Forget(ctx context.Context, req ForgetRequest) (Answer, error)

	// Get reads one key. A key that was never granted has epoch 0 and is no error.
	Get(ctx context.Context, req GetRequest) (Answer, error)

	// List reads records in the order of their keys' bytes, a page at a time. A page
	// is one consistent state; a listing as a whole is not.
	List(ctx context.Context, req ListRequest) (ListPage, error)

	// History reads what was granted, in log order, a page at a time: of one key, or
	// of all. It is bounded: old renewals go first, then old grants.
	History(ctx context.Context, req HistoryRequest) (HistoryPage, error)
}

// Outcome is what became of one operation of a batch: exactly one of the two is set.
type Outcome struct {
	Answer Answer
	Err    error
}

// AcquireRequest asks for a lease.
type AcquireRequest struct {
	Key        string
	Owner      string
	TTL        time.Duration
	RequestID  string
	Attributes map[string]string
	// Wait is how long to wait in line while the key is held: 0, for not at all, to
	// [MaxWait]. Whoever does not wait is not served before those who do. The place
	// belongs to the request id, which keeps it for a while between two calls. A caller
	// whose context ends leaves the line at once; a lease that was granted in that
	// instant is given back. When the wait is over, the refusal is a [*HeldError], with
	// the place in line.
	//
	// In the answer to a call that has waited, Remaining is what is left when the call
	// returns.
	Wait time.Duration
}

// Mutation returns r as a mutation.
func (r AcquireRequest) Mutation() Mutation {
	return Mutation{Op: OpAcquire, Key: r.Key, Owner: r.Owner, TTL: r.TTL, RequestID: r.RequestID, Attributes: r.Attributes}
}

// RenewRequest asks for more time.
type RenewRequest struct {
	Key   string
	Owner string
	Epoch uint64
	TTL   time.Duration
}

// Mutation returns r as a mutation.
func (r RenewRequest) Mutation() Mutation {
	return Mutation{Op: OpRenew, Key: r.Key, Owner: r.Owner, Epoch: r.Epoch, TTL: r.TTL}
}

// ReleaseRequest gives a lease back.
type ReleaseRequest struct {
	Key   string
	Owner string
	Epoch uint64
	// To hands the key over to that owner, out of turn: a name within the limits of an
	// owner's, else the refusal is an [*InvalidError] of field "to". If that owner does
	// not wait for the key now, nothing is done, and the refusal is a [*NotWaitingError].
	// Empty for whoever is first in line.
	To string
}

// Validate checks r against the limits and returns an [*InvalidError] that names the
// first field which is outside, or nil.
func (r ReleaseRequest) Validate() error {
	if err := r.Mutation().Validate(); err != nil || r.To == "" {
		return err
	}
	return validateOwner("to", r.To)
}

// Mutation returns r as a mutation.
func (r ReleaseRequest) Mutation() Mutation {
	return Mutation{Op: OpRelease, Key: r.Key, Owner: r.Owner, Epoch: r.Epoch}
}

// ForgetRequest declares everything written so far for the key erased.
type ForgetRequest struct {
	Key   string
	Owner string
	Epoch uint64
}

// Mutation returns r as a mutation.
func (r ForgetRequest) Mutation() Mutation {
	return Mutation{Op: OpForget, Key: r.Key, Owner: r.Owner, Epoch: r.Epoch}
}

// Consistency is how fresh a read has to be.
type Consistency uint8

const (
	// Linearizable reads see everything that was acknowledged before they began.
	Linearizable Consistency = iota
	// Stale reads are answered by the node that is asked, from what it has, leader
	// or not, however far behind.
	Stale
)

// GetRequest asks for one key.
type GetRequest struct {
	Key         string
	Consistency Consistency
}

// Selection says which records a listing shows.
type Selection uint8

const (
	// AllRecords shows every key that was ever granted.
	AllRecords Selection = iota
	// HeldOnly shows the keys whose lease is not over.
	HeldOnly
)

// ListRequest asks for a page of records.
type ListRequest struct {
	// Prefix is compared by bytes: "a" is a prefix of "a", "a/" and "ab".
	Prefix      string
	Selection   Selection
	Consistency Consistency
	// PageSize is at most [MaxPageSize]; 0 stands for [DefaultPageSize].
	PageSize int
	// PageToken is the NextPageToken of the page before; empty for the first.
	PageToken string
}

// ListPage is a page of records.
type ListPage struct {
	Answers []Answer
	// Now is the cluster clock of the whole page.
	Now Instant
	// NextPageToken is empty on the last page.
	NextPageToken string
}

// HistoryRequest asks for a page of history.
type HistoryRequest struct {
	// Key is the key, or empty for all keys.
	Key         string
	Consistency Consistency
	// PageSize is at most [MaxPageSize]; 0 stands for [DefaultPageSize].
	PageSize int
	// PageToken is the NextPageToken of the page before; empty for the first.
	PageToken string
}

// HistoryPage is a page of history.
type HistoryPage struct {
	Entries []Entry
	// NextPageToken is empty on the last page.
	NextPageToken string
}
