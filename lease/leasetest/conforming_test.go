package leasetest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// roundsInstants answers as if over a wire that has milliseconds.
type roundsInstants struct{ lease.Store }

func (s roundsInstants) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	return rounded(answer), err
}

func (s roundsInstants) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	answer, err := s.Store.Renew(ctx, req)
	return rounded(answer), err
}

func (s roundsInstants) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	answer, err := s.Store.Release(ctx, req)
	return rounded(answer), err
}

func (s roundsInstants) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	answer, err := s.Store.Get(ctx, req)
	return rounded(answer), err
}

func (s roundsInstants) History(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	page, err := s.Store.History(ctx, req)
	for i := range page.Entries {
		page.Entries[i].At = lease.InstantOfMillis(page.Entries[i].At.Millis())
		page.Entries[i].Wall = page.Entries[i].Wall.Truncate(time.Millisecond)
	}
	return page, err
}

func rounded(answer lease.Answer) lease.Answer {
	answer.Now = lease.InstantOfMillis(answer.Now.Millis())
	answer.Record.LeaseUntil = lease.InstantOfMillis(answer.Record.LeaseUntil.Millis())
	return answer
}

// addsRequestIDs fills in a fresh request id where a caller gave none.
type addsRequestIDs struct {
	lease.Store
	used atomic.Uint64
}

func (s *addsRequestIDs) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if req.RequestID == "" {
		req.RequestID = fmt.Sprintf("library-%d", s.used.Add(1))
	}
	return s.Store.Acquire(ctx, req)
}
