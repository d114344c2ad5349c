package holder

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// sentKey is under which a context carries a *sentRecord.
type sentKey struct{}

// sentRecord notes when the latest try of one call of a [Client] was sent. Since a
// client's tries follow each other, that is the try which was answered.
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

// ask has do call the store, and returns the clock just before the answered try left.
// Only a bare Client says when that was. With any other store, which may try several
// times or all at once, it is when the call began: never later than the truth, so that
// a lease may be thought shorter than it is, and never longer.
func (h *Holder) ask(ctx context.Context, do func(context.Context)) time.Duration {
	h.counts.requests.Add(1)
	record := &sentRecord{clock: h.clock}
	record.at.Store(int64(h.clock.Monotonic()))
	if _, ok := h.store.(*Client); ok {
		ctx = context.WithValue(ctx, sentKey{}, record)
	}
	do(ctx)
	return time.Duration(record.at.Load())
}
