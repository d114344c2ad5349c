package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/model"
)

// Status is how a check, or all of them, came out.
type Status string

// The statuses. Skipped is for what the caller has said cannot be looked at.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Unknown Status = "unknown"
	Skipped Status = "skipped"
)

// Violation is one broken promise.
type Violation struct {
	Check string `json:"check"`
	// Key is empty for what is not about one key.
	Key string `json:"key,omitempty"`
	// From and Until are when it was, on the harness's clock.
	From  time.Duration `json:"from"`
	Until time.Duration `json:"until"`
	// Text says in a sentence what was broken and by which operations.
	Text string `json:"text"`
	// Ops are the ids of those operations.
	Ops []int `json:"ops,omitempty"`
}

// Check is how one check came out.
type Check struct {
	Name string `json:"name"`
	// Promise is what has to hold.
	Promise string `json:"promise"`
	Status  Status `json:"status"`
	// Looked is how many Of it looked at: "answers", "grants".
	Looked int    `json:"looked"`
	Of     string `json:"of"`
	// Found counts the violations; Violations has the first [MaxViolations] of them.
	Found      int         `json:"found"`
	Violations []Violation `json:"violations,omitempty"`
	// Notes say what it found out besides, and why it is unknown if it is.
	Notes []string `json:"notes,omitempty"`
}

// MaxViolations bounds how many violations of one check are kept.
const MaxViolations = 100

// Verdict is how a run came out.
type Verdict struct {
	Checks []Check `json:"checks"`
	// Keys are what the model found of each key, for porcupine's pictures.
	Keys []model.Result `json:"-"`
	// Took is how long judging took.
	Took time.Duration `json:"took"`
}

// Status is Fail if any check failed, else Unknown if any is unknown, else Pass.
func (v Verdict) Status() Status {
	status := Pass
	for _, c := range v.Checks {
		switch c.Status {
		case Fail:
			return Fail
		case Unknown:
			status = Unknown
		}
	}
	return status
}

// Violations are those of all checks.
func (v Verdict) Violations() []Violation {
	var all []Violation
	for _, c := range v.Checks {
		all = append(all, c.Violations...)
	}
	return all
}

// Check returns the check with that name, or a zero one.
func (v Verdict) Check(name string) Check {
	for _, c := range v.Checks {
		if c.Name == name {
			return c
		}
	}
	return Check{}
}

// Summary is the verdict in text: PASS, FAIL or UNKNOWN, and a line for each check with
// its first violations.
func (v Verdict) Summary() string {
	const shown = 3
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.ToUpper(string(v.Status())))
	for _, c := range v.Checks {
		fmt.Fprintf(&b, "  %-7s  %-12s  %d %s", c.Status, c.Name, c.Looked, c.Of)
		for _, note := range c.Notes {
			fmt.Fprintf(&b, "; %s", note)
		}
		b.WriteByte('\n')
		for i, violation := range c.Violations {
			if i == shown {
				fmt.Fprintf(&b, "             and %d more\n", c.Found-shown)
				break
			}
			fmt.Fprintf(&b, "             %s\n", violation)
		}
	}
	return b.String()
}

// String is the violation in a line.
func (v Violation) String() string {
	at := v.From.Round(time.Millisecond).String()
	if v.Until > v.From {
		at += " to " + v.Until.Round(time.Millisecond).String()
	}
	if v.Key == "" {
		return fmt.Sprintf("at %s: %s", at, v.Text)
	}
	return fmt.Sprintf("%q at %s: %s", v.Key, at, v.Text)
}
