package holder

import "time"

// proof is what an answered try proves: that the store will not end the lease before
// remaining has passed since sent. Both are of the holder's own clock.
//
// It holds because the store took its reading after the request had arrived, so after
// it was sent, and because no more time passes on the cluster clock than in reality.
type proof struct {
	// sent is the clock just before the try that was answered: not before an earlier
	// try of the same call, and not when the answer came.
	sent time.Duration
	// remaining is what the answer says.
	remaining time.Duration
}

// end is the moment at which the store may end the lease.
func (p proof) end() time.Duration { return p.sent + p.remaining }

// terms are what a holder asks for with each lease. Invariant: 0 < margin < ttl.
type terms struct {
	ttl    time.Duration
	margin time.Duration
}

// deadline is the moment at which the holder of a lease with that end must stop.
func (t terms) deadline(end time.Duration) time.Duration { return end - t.margin }

// hardDeadline is the moment by which work that did not stop at the deadline has to be
// ended by force: halfway through the margin. The other half is for the act itself and
// for what the clocks' rates differ.
func (t terms) hardDeadline(end time.Duration) time.Duration { return end - t.margin/2 }

// window is how long a fresh lease can be acted on.
func (t terms) window() time.Duration { return t.ttl - t.margin }

// interval is the time between renewals that succeed: a third of the ttl, and less
// where the margin leaves too little of the window for trying again.
func (t terms) interval() time.Duration { return min(t.ttl/3, t.window()/2) }

// left returns how much of a lease there is to save at now: what is left until the
// deadline; after that what is left until its end, since a renewal can still resume
// it; after that there is no hurry, and it is a whole window.
func (t terms) left(end, now time.Duration) time.Duration {
	if left := t.deadline(end) - now; left > 0 {
		return left
	}
	if left := end - now; left > 0 {
		return left
	}
	return t.window()
}

const (
	leastTry   = 50 * time.Millisecond
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// try bounds one try of a renewal: a third of what is left, so that three always fit,
// whatever became of those before.
func (t terms) try(left time.Duration) time.Duration {
	return max(left/3, min(leastTry, t.window()/10))
}

// pause is the time from a failed try to the next, shorter as the deadline nears.
func (t terms) pause(left time.Duration) time.Duration {
	return max(min(left/8, mostPause), min(leastPause, t.window()/32))
}
