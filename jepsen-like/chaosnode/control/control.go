// Package control is how a harness tells a node program of its own, while that runs,
// what its clock and its disk shall do: one JSON object a line, numbered, on the node's
// standard input, and an answer with the same number on its standard output. The end of
// the input ends the node. Between the answers the node says what happens to it.
package control

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Command is what a node is told. Fields that are nil change nothing.
type Command struct {
	Number int                 `json:"number"`
	Clock  *nemesis.ClockState `json:"clock,omitempty"`
	Disk   *nemesis.DiskState  `json:"disk,omitempty"`
}

// Answer is what the node says to the command of that number, once it is in effect; or
// an event, and then there is no number.
type Answer struct {
	Number int    `json:"number"`
	Error  string `json:"error,omitempty"`
	Event  *Event `json:"event,omitempty"`
}

// Event is something that happened to the node.
type Event struct {
	What   string `json:"what"`
	Detail string `json:"detail,omitempty"`
}

// What happens to a node. Of killed the node tells just before it kills itself.
const (
	SnapshotTaken    = "snapshot taken"
	SnapshotReceived = "snapshot received" // from the leader, since the log did not reach back far enough
	Killed           = "killed"
)

// Tell tells an event, in one write to out.
func Tell(out io.Writer, e Event) error {
	if err := json.NewEncoder(out).Encode(Answer{Event: &e}); err != nil {
		return fmt.Errorf("tell that a %s: %w", e.What, err)
	}
	return nil
}

// Clock and Disk are what commands are about.
type (
	Clock interface {
		Set(state nemesis.ClockState) error
	}
	Disk interface {
		Set(state nemesis.DiskState) error
	}
)

// Serve does what commands say and answers each, in one write to out, until in ends,
// which is no error.
func Serve(in io.Reader, out io.Writer, clock Clock, disk Disk) error {
	lines := bufio.NewScanner(in)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var c Command
		err := json.Unmarshal(lines.Bytes(), &c)
		if err == nil && c.Clock != nil {
			err = clock.Set(*c.Clock)
		}
		if err == nil && c.Disk != nil {
			err = disk.Set(*c.Disk)
		}
		answer := Answer{Number: c.Number}
		if err != nil {
			answer.Error = err.Error()
		}
		if err := answers.Encode(answer); err != nil {
			return fmt.Errorf("answer a command: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read a command: %w", err)
	}
	return nil
}
