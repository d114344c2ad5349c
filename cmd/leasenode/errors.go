package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

// The exit codes, which scripts rely on.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitHeld        = 3
	exitLost        = 4
	exitUnavailable = 5
)

// reasonFailed is the reason of a failure that is not one of the store's.
const reasonFailed = "FAILED"

// usageError is a command line that cannot be executed as it is.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Code makes a usage error the same kind of failure as an argument that the
// store refuses.
func (e *usageError) Code() lease.Code { return lease.CodeInvalid }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// attemptError is an acquire whose outcome is unknown, with the request id that
// names the attempt. The id is a secret of whoever asked, since it can take the
// grant: it is shown only where it is needed to try again.
type attemptError struct {
	requestID string
	err       error
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

// settled returns the error of a mutation with the sense that it has for its
// caller: one that was cut short without any word of the store may have been done.
func settled(err error) error {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if cut && lease.CodeOf(err) == "" {
		return fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, err)
	}
	return err
}

// exitCode returns the exit code for err.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	switch lease.CodeOf(err) {
	case lease.CodeInvalid:
		return exitUsage
	case lease.CodeHeld:
		return exitHeld
	case lease.CodeLost, lease.CodeFenced:
		return exitLost
	case lease.CodeUnavailable, lease.CodeOutcomeUnknown:
		return exitUnavailable
	default:
		return node.ExitCode(err)
	}
}

// fail tells the user about err, in one line on standard error and with -o json
// also as an object on standard output, and returns the exit code.
func (a *app) fail(err error) int {
	message := a.message(err)
	fmt.Fprintf(a.stderr, "leasenode: %s\n", message)
	if a.output.value == "json" {
		// There is nobody left to tell if this fails too.
		_ = writeJSON(a.stdout, errorJSON{failureOf(err, message)})
	}
	return exitCode(err)
}

// message says in one line what happened and what to do about it.
func (a *app) message(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	var usage *usageError
	var attempt *attemptError
	switch {
	case errors.As(err, &usage):
		return fmt.Sprintf(`%s (see "%s --help")`, text, a.command)
	case errors.As(err, &attempt):
		return text + "; repeat the command with --request-id " + attempt.requestID
	case lease.CodeOf(err) == lease.CodeUnavailable:
		return fmt.Sprintf(`%s; asked %s; %s`, text, strings.Join(a.endpoints, ", "), a.remedy())
	default:
		return text
	}
}

// remedy says what to do when nobody answered, or nobody who could.
func (a *app) remedy() string {
	look := `see "leasenode status"`
	if a.command == "leasenode status" {
		look = "look whether the nodes run"
	}
	if a.endpointsTyped || strings.Join(a.endpoints, ",") != defaultEndpoints {
		return look + ", and whether --endpoints are the nodes' client addresses (--api-addr), not those for other nodes (--peer-addr)"
	}
	return look + `, or start a cluster here with "leasenode dev"`
}

// readError is the failure of a call that changes nothing: that it was "certainly not
// done" goes without saying.
type readError struct{ err error }

func (e *readError) Error() string {
	return strings.ReplaceAll(e.err.Error(), lease.ErrUnavailable.Error(), "unavailable, try again")
}
func (e *readError) Unwrap() error { return e.err }

// errorJSON is what -o json prints for a failure.
type errorJSON struct {
	Error failureJSON `json:"error"`
}

type failureJSON struct {
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Record  *recordJSON `json:"record"`
	// RequestID is there only if the outcome of an acquire is unknown.
	RequestID string `json:"request_id,omitempty"`
}

func failureOf(err error, message string) failureJSON {
	f := failureJSON{Reason: string(lease.CodeOf(err)), Message: message}
	if f.Reason == "" {
		f.Reason = reasonFailed
	}
	var held *lease.HeldError
	var lost *lease.LostError
	var attempt *attemptError
	switch {
	case errors.As(err, &held):
		f.Record = new(recordOf(held.Record, held.Remaining))
	case errors.As(err, &lost):
		f.Record = new(recordOf(lost.Record, lost.Remaining))
	case errors.As(err, &attempt):
		f.RequestID = attempt.requestID
	}
	return f
}
