package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// ttl is what checks ask for where its length does not matter.
const ttl = 10 * time.Second

// trial is one run of one check. After the first fault it does nothing more and
// asks the store nothing more, so that a check reads as a plain list of steps.
type trial struct {
	ctx     context.Context // for the length of the run
	subject Subject
	keys    string   // what all keys of this run begin with
	steps   []string // what was done so far
	err     error    // the first fault
	atEnd   []func() // what ends what the check has left going on
	// repeated says that every fault is what a call comes to that was tried again.
	repeated bool
	// polled says that any fault may come of a wait whose polls were late.
	polled bool
}

// errStopped stands for what a trial that has failed did not ask any more.
var errStopped = errors.New("the check has failed before")

// failf records a fault, together with the steps that led to it.
func (t *trial) failf(format string, args ...any) {
	if t.err != nil {
		return
	}
	const shown = 12
	steps := t.steps
	if len(steps) > shown {
		steps = append([]string{"..."}, steps[len(steps)-shown:]...)
	}
	t.err = fmt.Errorf("%w; steps: %s", fmt.Errorf(format, args...), strings.Join(steps, ", "))
}

// inTime says that what follows hangs from waits whose polls come in time. Over a way they
// may not, however well the store keeps the line: it passes over who has no poll with it.
func (t *trial) inTime() { t.polled = t.subject.Retries }

// repeatedf records a fault that may only come from a call that was tried again on the
// way, if the subject does that.
func (t *trial) repeatedf(format string, args ...any) {
	if t.err == nil {
		t.failf(format, args...)
		t.repeated = t.subject.Retries
	}
}

// part runs some steps as a trial of their own, so that one that fails does not
// keep the others from being tried.
func (t *trial) part(name string, run func(*trial)) {
	p := &trial{ctx: t.ctx, subject: t.subject, keys: t.keys + unique() + "/"}
	run(p)
	p.end()
	if p.err != nil {
		t.repeated = p.repeated && (t.repeated || t.err == nil)
		t.err = errors.Join(t.err, fmt.Errorf("%s: %w", name, p.err))
	}
}

// end ends what is still going on.
func (t *trial) end() {
	for _, end := range t.atEnd {
		end()
	}
}

// key returns a key of this run.
func (t *trial) key(name string) string { return t.keys + name }

// advance moves the store's clock.
func (t *trial) advance(d time.Duration) {
	_, err := do(t, fmt.Sprintf("advance %v", d), func() (struct{}, error) { return struct{}{}, t.subject.Advance(t.ctx, d) })
	if err != nil {
		t.failf("advance: %w", err)
	}
}

// do asks the store something, unless the trial has failed before.
func do[T any](t *trial, step string, ask func() (T, error)) (T, error) {
	var none T
	if t.ctx.Err() != nil {
		t.failf("the run was ended: %w", context.Cause(t.ctx))
	}
	if t.err != nil {
		return none, errStopped
	}
	t.steps = append(t.steps, step)
	return ask()
}

// done expects success.
func (t *trial) done(answer lease.Answer, err error) lease.Answer {
	if err != nil {
		t.failf("want it done, got %w", err)
	}
	return answer
}

// changed expects an operation to have done something.
func (t *trial) changed(answer lease.Answer) {
	if !answer.Changed {
		t.repeatedf("want changed true, got false")
	}
}

// passedOn expects the success of a release to somebody who waits. The same again would
// be lost: the next epoch exists.
func (t *trial) passedOn(answer lease.Answer, err error) {
	if _, lost := errors.AsType[*lease.LostError](err); lost {
		t.repeatedf("want it released, got %w", err)
	}
	t.done(answer, err)
}

// held expects a [*lease.HeldError] and returns it.
func (t *trial) held(answer lease.Answer, err error) lease.HeldError {
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.failf("want it refused as held, got %w", outcome(answer, err))
		return lease.HeldError{}
	}
	return *held
}

// lost expects a [*lease.LostError] and returns it.
func (t *trial) lost(answer lease.Answer, err error) lease.LostError {
	var lost *lease.LostError
	if !errors.As(err, &lost) {
		t.failf("want it refused as lost, got %w", outcome(answer, err))
		return lease.LostError{}
	}
	return *lost
}

// invalid expects a [*lease.InvalidError] that names field and its limit.
func (t *trial) invalid(field string, err error) {
	var invalid *lease.InvalidError
	switch {
	case !errors.As(err, &invalid):
		t.failf("want it refused as an invalid %s, got %w", field, orDone(err))
	case invalid.Field != field:
		t.failf("want the field %q named, got %q: %w", field, invalid.Field, err)
	case invalid.Limit == "" || !strings.Contains(err.Error(), invalid.Limit):
		t.failf("want the limit named, got %w", err)
	}
}

// notWaiting expects a [*lease.NotWaitingError] that names owner.
func (t *trial) notWaiting(owner string, err error) {
	var refused *lease.NotWaitingError
	if !errors.As(err, &refused) || refused.Owner != owner {
		t.failf("want it refused because %q does not wait, got %w", owner, orDone(err))
	}
}

var errDone = errors.New("it done")

func orDone(err error) error {
	if err == nil {
		return errDone
	}
	return err
}

// outcome returns what came of an operation as an error, whatever it was.
func outcome(answer lease.Answer, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("it done: %+v", answer)
}

// equal expects got to be want.
func equal[T comparable](t *trial, what string, got, want T) {
	if got != want {
		t.failf("want %s %v, got %v", what, want, got)
	}
}

// state is what a check expects of a record, at the resolution of the wire.
type state struct {
	owner string
	epoch uint64
	left  time.Duration // of the lease
	floor uint64
}

// shows expects an answer to show this state, with Remaining and the instants in
// agreement.
func (t *trial) shows(answer lease.Answer, want state) {
	r := answer.Record
	left := max(0, time.Duration(r.LeaseUntil.Millis()-answer.Now.Millis())*time.Millisecond)
	equal(t, "state", state{r.Owner, r.Epoch, left, r.ForgottenAtEpoch}, want)
	equal(t, "remaining", answer.Remaining, want.left)
}
