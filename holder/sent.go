package holder

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// sentKey is under which a context carries a *sentRecord.
type sentKey struct{}

// sentRecord notes when the latest try of one call of a [Client] was sent. Since a
// client's tries follow each other, that is the try which was answered; polls, which
// overlap, are noted when they are answered.
type sentRecord struct {
	clock lease.Clock
	at    atomic.Int64
}

// noteSend tells whoever asked with ctx that a try is being sent.
func noteSend(ctx context.Context) {
	if record, ok := ctx.Value(sentKey{}).(*sentRecord); ok {
		record.at.Store(int64(record.clock.Monotonic()))
	}
}

// sendTime returns the present on the clock of whoever asked with ctx; 0 if it has none.
func sendTime(ctx context.Context) time.Duration {
	if record, ok := ctx.Value(sentKey{}).(*sentRecord); ok {
		return record.clock.Monotonic()
	}
	return 0
}

// noteSendAt tells whoever asked with ctx that the answered try was sent at that time,
// and reports whether anybody wants to know.
func noteSendAt(ctx context.Context, at time.Duration) bool {
	record, ok := ctx.Value(sentKey{}).(*sentRecord)
	if ok {
		record.at.Store(int64(at))
	}
	return ok
}

func hasSendTime(ctx context.Context) bool {
	_, ok := ctx.Value(sentKey{}).(*sentRecord)
	return ok
}

// ask has do call the store, for which failures, if it is not nil, counts the tries that
// nobody served, and returns the clock just before the answered try left.
// Only a bare Client says when that was. With any other store, which may try several
// times or all at once, it is when the call began: never later than the truth, so that
// a lease may be thought shorter than it is, and never longer.
func (h *Holder) ask(ctx context.Context, failures *atomic.Uint64, do func(context.Context) error) time.Duration {
	h.counts.requests.Add(1)
	record := &sentRecord{clock: h.clock}
	record.at.Store(int64(h.clock.Monotonic()))
	if _, ok := h.store.(*Client); ok {
		ctx = context.WithValue(ctx, sentKey{}, record)
		ctx = context.WithValue(ctx, hearingKey{}, hearing{contact: &h.contact, failures: failures})
		_ = do(ctx) // the client tells the contact of each try
		return time.Duration(record.at.Load())
	}
	switch err := do(ctx); {
	case !unserved(err):
		h.contact.served()
	case !errors.Is(err, context.Canceled):
		h.contact.failed("", err)
		if failures != nil {
			failures.Add(1)
		}
	}
	return time.Duration(record.at.Load())
}
