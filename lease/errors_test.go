package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want lease.Code
	}{
		{&lease.HeldError{}, "LEASE_HELD"},
		{&lease.LostError{}, "LEASE_LOST"},
		{&lease.FencedError{}, "FENCED"},
		{lease.ErrUnavailable, "UNAVAILABLE"},
		{lease.ErrOutcomeUnknown, "OUTCOME_UNKNOWN"},
		{&lease.InvalidError{}, "INVALID"},
		{&lease.ExhaustedError{}, "EXHAUSTED"},
		{&lease.NotWaitingError{}, "NOT_WAITING"},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			for _, err := range []error{c.err, fmt.Errorf("asking n1: %w", c.err), errors.Join(context.Canceled, c.err)} {
				if got := lease.CodeOf(err); got != c.want {
					t.Errorf("CodeOf(%q) = %q, want %q", err, got, c.want)
				}
			}
		})
	}
	for _, err := range []error{nil, context.Canceled, errors.New("LEASE_HELD")} {
		if got := lease.CodeOf(err); got != "" {
			t.Errorf("CodeOf(%v) = %q, want none", err, got)
		}
	}
}

func TestNotDoneAndNotKnownAreApart(t *testing.T) {
	if errors.Is(lease.ErrUnavailable, lease.ErrOutcomeUnknown) || errors.Is(lease.ErrOutcomeUnknown, lease.ErrUnavailable) {
		t.Error("one of them is the other")
	}
}

// Who retries what was not done must not take a fence for that.
func TestFencedIsNoOtherError(t *testing.T) {
	err := error(&lease.FencedError{Reason: lease.ReasonExpiredLocally, Cause: lease.CauseUnreachable})
	if errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrOutcomeUnknown) {
		t.Error("fenced, yet certainly not done or not known")
	}
}

// Scripts and metrics rely on these words.
func TestReasonsAndCausesHaveTheirNames(t *testing.T) {
	got := fmt.Sprint(lease.ReasonExpiredLocally, " ", lease.ReasonLost, " ", lease.ReasonReleased, "; ",
		lease.CauseUnreachable, " ", lease.CauseSuperseded, " ", lease.CauseExpired, " ", lease.CauseReleased)
	if want := "lease_expired_locally lease_lost lease_released; unreachable superseded expired released"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrorsSayWhatHappenedAndWhatToDo(t *testing.T) {
	record := lease.Record{Key: "the/key", Owner: "r1", Epoch: 7}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"held":         {&lease.HeldError{Record: record, Remaining: 1500 * time.Millisecond}, []string{`"the/key"`, `"r1"`, "epoch 7", "1.5s", "wait"}},
		"never given":  {&lease.LostError{Record: lease.Record{Key: "the/key"}}, []string{`"the/key"`, "never granted", "acquire"}},
		"over":         {&lease.LostError{Record: record}, []string{`"the/key"`, `"r1"`, "epoch 7", "over", "stop"}},
		"superseded":   {&lease.LostError{Record: record, Remaining: time.Second}, []string{`"the/key"`, `held by "r1" at epoch 7`, "not by the owner at the epoch that was named", "stop"}},
		"fenced":       {&lease.FencedError{Reason: lease.ReasonExpiredLocally, Cause: lease.CauseUnreachable, Key: "the/key", Epoch: 7}, []string{`"the/key"`, "epoch 7", "lease_expired_locally", "unreachable", "stop", "renewal"}},
		"fenced, lost": {&lease.FencedError{Reason: lease.ReasonLost, Cause: lease.CauseSuperseded, Key: "the/key", Epoch: 7}, []string{`"the/key"`, "epoch 7", "lease_lost", "superseded", "stop", "acquire it again"}},
		"released":     {&lease.FencedError{Reason: lease.ReasonReleased, Cause: lease.CauseReleased, Key: "the/key", Epoch: 7}, []string{`"the/key" at epoch 7 was released`, "lease_released", "not held any more"}},
		"invalid":      {&lease.InvalidError{Field: "ttl", Problem: "0s is outside", Limit: "100ms to 24h"}, []string{"ttl", "0s is outside", "100ms to 24h"}},
		"exhausted":    {&lease.ExhaustedError{Resource: "keys", Limit: 10}, []string{"keys", "10"}},
		"of a key":     {&lease.ExhaustedError{Resource: "epochs", Limit: 10, Key: "the/key"}, []string{"epochs", "10", `"the/key"`}},
		"not waiting":  {&lease.NotWaitingError{Key: "the/key", Owner: "r2"}, []string{`"the/key" was not released`, `"r2" does not wait`, "first in line"}},
		"unavailable":  {lease.ErrUnavailable, []string{"not done", "try again"}},
		"unknown":      {lease.ErrOutcomeUnknown, []string{"may have been done", "same request id"}},
	} {
		for _, part := range c.want {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, c.err, part)
			}
		}
		if name == "released" && (strings.Contains(c.err.Error(), "fenced") || strings.Contains(c.err.Error(), "acquire")) {
			t.Errorf("a release that reads as an alarm: %q", c.err)
		}
		if strings.Contains(c.err.Error(), "\n") {
			t.Errorf("%s: %q is not one line", name, c.err)
		}
	}
}

// Who reads a refusal on a terminal must not be written to by a key.
func TestErrorsQuoteWhatCallersGave(t *testing.T) {
	record := lease.Record{Key: "k\n\x1b[2J", Owner: "o\n\x1b[2J", Epoch: 1}
	for _, err := range []error{
		&lease.HeldError{Record: record},
		&lease.LostError{Record: record},
		&lease.LostError{Record: record, Remaining: 1},
		&lease.ExhaustedError{Resource: "epochs", Key: record.Key},
		&lease.FencedError{Key: record.Key},
		&lease.NotWaitingError{Key: record.Key, Owner: record.Owner},
		lease.ValidateKey(record.Key),
		lease.Mutation{Op: lease.OpRelease, Key: "k", Owner: record.Owner}.Validate(),
	} {
		if strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q has a control character", err)
		}
	}
}
