package holder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const (
	// secondPoll is when the first poll of a wait is replaced by a longer one, with which
	// it is answered, so that it is known at once who is in the way.
	secondPoll = 10 * time.Millisecond
	// firstPoll is how long the first poll stays in line if the second one is late: who is
	// between two polls is passed over.
	firstPoll = 250 * time.Millisecond
	// leastPoll is the shortest poll that is worth sending: with less to wait, the wait is
	// over.
	leastPoll = 5 * time.Millisecond
	// pollSlack is what a poll is given beyond its time in line.
	pollSlack = maxTry
)

// wait is one call that waits its turn: a row of polls under one request id, each sent
// before the one before it ends. The lease is counted from the sending of the poll that
// is granted, so each has its own.
type wait struct {
	client *Client
	req    lease.AcquireRequest
	ours   bool // the request id was made here
	began  time.Time
	end    time.Time

	results chan polled
	polls   sync.WaitGroup

	sent     int // the number of the latest poll
	attempt  int // the first poll under the present request id
	out      int // polls without a result
	failures int
	unknown  error // of the latest poll that may have been granted unheard
	held     *lease.HeldError
}

// polled is what came of a poll.
type polled struct {
	number int
	target target
	length time.Duration
	began  time.Time
	sentAt time.Duration // on the clock of who asks, if it has one
	resp   *leasepb.AcquireResponse
	failed error
}

// wait acquires with a wait.
func (c *Client) wait(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if err := req.Validate(); err != nil {
		return lease.Answer{}, err
	}
	w := &wait{client: c, req: req, began: time.Now(), results: make(chan polled), attempt: 1}
	w.end = w.began.Add(req.Wait)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-minTry).Before(w.end) {
		w.end = deadline.Add(-minTry) // the refusal has to be heard
	}
	if req.RequestID == "" {
		w.req.RequestID, w.ours = rand.Text(), true
	}
	pollCtx, stop := context.WithCancel(ctx)
	defer w.polls.Wait()
	defer stop()
	answer, err := w.run(ctx, pollCtx)
	if errors.Is(err, errWaitOver) {
		stop()
		return w.last(ctx)
	}
	return answer, err
}

// errWaitOver says that the wait is over without a word of who has the key.
var errWaitOver = errors.New("the wait is over")

func (w *wait) run(ctx, pollCtx context.Context) (lease.Answer, error) {
	next := time.NewTimer(0)
	defer next.Stop()
	length := firstPoll
	for {
		select {
		case <-next.C:
			length = min(length, lease.LongestPoll(w.req.TTL), time.Until(w.end)).Truncate(time.Millisecond)
			if length < min(leastPoll, w.req.Wait) && w.sent > 0 || length <= 0 {
				if w.out == 0 {
					return lease.Answer{}, errWaitOver
				}
				continue
			}
			if err := w.send(pollCtx, length); err != nil {
				return lease.Answer{}, err
			}
			pause := length * 3 / 4
			if w.sent == 1 {
				pause = min(pause, secondPoll)
			}
			next.Reset(pause)
			length = lease.MaxPoll
		case r := <-w.results:
			w.out--
			if r.number >= w.attempt { // else it is of an attempt that is over
				answer, err, done := w.take(ctx, r)
				if done {
					return answer, err
				}
				w.plan(next, r)
			}
			if w.out == 0 && time.Until(w.end) < leastPoll { // the timer may have run out before
				return lease.Answer{}, w.over()
			}
		case <-ctx.Done():
			return w.giveUp(ctx)
		}
	}
}

// plan sets when the next poll is sent after r ended without a grant: before its time if
// there may be no poll at the leader now, whatever the reason. One that ends early, though
// it is the newest, was replaced by one of a store that goes by the order of arrival, or
// of somebody else with the same request id. Leaders keep the newest, so that this cannot
// go on for ever between the polls of one wait.
func (w *wait) plan(next *time.Timer, r polled) {
	switch {
	case r.number < w.sent && w.sent >= w.attempt: // a newer one of the attempt is out, or has set it
	case w.failures > 0:
		next.Reset(w.pause())
	case time.Since(r.began) < r.length/2:
		next.Reset(secondPoll)
	}
}

// over returns the error for a wait that is over.
func (w *wait) over() error {
	if w.held == nil || w.failures > 0 {
		return errWaitOver
	}
	return w.held
}

// send sends the next poll.
func (w *wait) send(life context.Context, length time.Duration) error {
	target, done, err := w.client.conns.pickWaiting()
	if err != nil {
		return err
	}
	w.sent++
	m := w.req.Mutation()
	p, err := wire.PollToProto(lease.Poll{Mutation: m, Wait: length, Waited: min(time.Since(w.began), lease.MaxWait)})
	if err != nil {
		done()
		return err
	}
	w.out++
	r := polled{number: w.sent, target: target, length: length}
	w.polls.Go(func() {
		defer done()
		ctx, cancel := context.WithTimeout(life, length+pollSlack)
		defer cancel()
		r.began, r.sentAt = time.Now(), sendTime(ctx)
		r.resp, r.failed = leasepb.NewLeaseServiceClient(target.conn).Acquire(ctx, p)
		select {
		case w.results <- r:
		case <-life.Done(): // nobody looks any more
		}
	})
	return nil
}

// take takes in what came of a poll of the present attempt, and returns whether that
// ends the wait.
func (w *wait) take(ctx context.Context, r polled) (answer lease.Answer, err error, done bool) {
	a := attempt[*leasepb.AcquireResponse]{subject: subjectOf(lease.OpAcquire, w.req.Key), effect: wire.Mutates}
	conns := w.client.conns
	if r.failed == nil {
		conns.learn(r.target, wire.LeaderFromProto(r.resp.GetLeader()))
		answer, err = wire.AnswerFromProto(r.resp.GetAnswer())
		if err != nil {
			return answer, a.malformed(err), true
		}
		if !noteSendAt(ctx, r.sentAt) {
			answer.Remaining = max(0, answer.Remaining-time.Since(r.began))
		}
		return answer, nil, true
	}
	err = a.explain(r.target.addr, r.failed)
	var held *lease.HeldError
	_, lost := errors.AsType[*lease.LostError](err)
	switch {
	case errors.As(err, &held):
		conns.learn(r.target, wire.LeaderOf(r.failed))
		w.failures, w.unknown, w.held = 0, nil, held
		lease.TellWaiting(ctx, *held)
		return lease.Answer{}, nil, false
	case lost && w.ours:
		// A poll was granted, unheard, and that lease is over: it never held anything. The
		// wait goes on under another id, with the place that it has by its length.
		w.req.RequestID, w.attempt, w.unknown = rand.Text(), w.sent+1, nil
	case errors.Is(err, lease.ErrOutcomeUnknown):
		w.unknown = err
		fallthrough
	case errors.Is(err, lease.ErrUnavailable):
		conns.unlearn(r.target, r.failed)
	default:
		conns.learn(r.target, wire.LeaderOf(r.failed))
		return lease.Answer{}, err, true
	}
	w.failures++
	return lease.Answer{}, nil, false
}

// pause returns when to try again after failures, with jitter.
func (w *wait) pause() time.Duration {
	most := min(maxPause, firstPause<<min(w.failures, 10))
	return most/2 + mathrand.N(most/2)
}

// last asks once more, without waiting, and for as long as ctx allows.
func (w *wait) last(ctx context.Context) (lease.Answer, error) {
	p, err := wire.AcquireToProto(w.req)
	if err != nil {
		return lease.Answer{}, err
	}
	began := time.Now()
	answer, err := mutate(ctx, w.client, w.client.acquisition(p, w.ours))
	if err == nil && !hasSendTime(ctx) {
		answer.Remaining = max(0, answer.Remaining-time.Since(began))
	}
	return answer, err
}

// giveUp ends the polls that are out, and returns what is known then. What is out may
// be granted in this instant; it is then given back.
func (w *wait) giveUp(ctx context.Context) (lease.Answer, error) {
	cause := context.Cause(ctx)
	switch {
	case w.out > 0 && w.unknown == nil:
		w.unknown = fmt.Errorf("%s: it was given up while waiting in line: %w", subjectOf(lease.OpAcquire, w.req.Key), lease.ErrOutcomeUnknown)
		fallthrough
	case w.unknown != nil:
		return lease.Answer{}, fmt.Errorf("%w: %w", w.unknown, cause)
	case w.held != nil:
		return lease.Answer{}, fmt.Errorf("%w: %w", w.held, cause)
	default:
		return lease.Answer{}, fmt.Errorf("%s: %w: %w", subjectOf(lease.OpAcquire, w.req.Key), lease.ErrUnavailable, cause)
	}
}
