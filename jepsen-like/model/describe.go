package model

import (
	"fmt"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// Describe says in one line what op asked and what it was told.
func Describe(op history.Op) string {
	return fmt.Sprintf("#%d %s by %s: %s", op.ID, asked(op), op.Client, told(op))
}

func asked(op history.Op) string {
	switch op.Kind {
	case history.Acquire:
		return fmt.Sprintf("acquire(%q, %v, id %q)", op.Owner, op.TTL, op.RequestID)
	case history.Renew:
		return fmt.Sprintf("renew(%q, epoch %d, %v)", op.Owner, op.Epoch, op.TTL)
	case history.Release, history.Forget:
		return fmt.Sprintf("%s(%q, epoch %d)", op.Kind, op.Owner, op.Epoch)
	default:
		return string(op.Kind) + "()"
	}
}

func told(op history.Op) string {
	r := op.Record
	var shown string
	switch {
	case !judged(op) && op.Kind != history.GetStale:
		return string(op.Outcome)
	case r.Epoch == 0:
		shown = "never granted"
	default:
		shown = fmt.Sprintf("epoch %d of %q, until %d ms, %v left", r.Epoch, r.Owner, r.LeaseUntil.Millis(), op.Remaining)
		if r.ForgottenAtEpoch > 0 {
			shown += fmt.Sprintf(", floor %d", r.ForgottenAtEpoch)
		}
	}
	if op.Now != 0 {
		shown += fmt.Sprintf(", clock %d ms", op.Now.Millis())
	}
	if op.Outcome == history.OK && op.Kind != history.Get && op.Kind != history.GetStale && !op.Changed {
		shown += ", as before"
	}
	return string(op.Outcome) + ", " + shown
}

func (in *input) describe() string {
	switch in.part {
	case ending:
		return "end: what is not done by now is never done"
	case possible:
		return fmt.Sprintf("#%d %s by %s: perhaps done", in.op.ID, asked(in.op), in.op.Client)
	default:
		return Describe(in.op)
	}
}
