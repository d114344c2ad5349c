package nemesis

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one fault of a schedule. All lengths are in nanoseconds in JSON.
type Step struct {
	Kind Kind `json:"kind"`
	// At is when it begins, For how long it lasts; both on the schedule's time.
	At  time.Duration `json:"at"`
	For time.Duration `json:"for"`
	// Nodes are those it is about, numbered from 0, in the order that the kind wants.
	Nodes []int `json:"nodes,omitempty"`
	// Leader has it take whoever leads when it begins in place of the first of Nodes.
	Leader bool `json:"leader,omitempty"`
	// Holder is the holder that a [PauseHolder] is about.
	Holder int `json:"holder,omitempty"`
	// Every is half the period of what comes and goes; 0 for what stays.
	Every time.Duration `json:"every,omitempty"`

	Link  LinkState  `json:"link,omitzero"`
	Clock ClockState `json:"clock,omitzero"`
	Disk  DiskState  `json:"disk,omitempty"`
}

// End is when the fault ends.
func (s Step) End() time.Duration { return s.At + s.For }

// Phase is a time of faults, until Heal, and a quiet time after it, until Until.
type Phase struct {
	From  time.Duration `json:"from"`
	Heal  time.Duration `json:"heal"`
	Until time.Duration `json:"until"`
}

// Schedule is what is done to a cluster, and when.
type Schedule struct {
	// Seed is that of the whole run, for people and for the load that goes with it.
	Seed    uint64        `json:"seed"`
	Nodes   int           `json:"nodes"`
	Holders int           `json:"holders"`
	Time    time.Duration `json:"time"`
	// Phases follow each other without a gap, from 0 to Time.
	Phases []Phase `json:"phases"`
	// Steps are in the order in which they begin.
	Steps []Step `json:"steps"`
}

// Decode reads a schedule that was printed as JSON, perhaps changed by hand.
func Decode(data []byte) (Schedule, error) {
	var s Schedule
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Schedule{}, fmt.Errorf("read the schedule: %w", err)
	}
	s.sort()
	return s, s.Validate()
}

// Encode returns the schedule as JSON for people and for [Decode].
func (s Schedule) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

// Kinds returns the kinds that the schedule has, each once, in the order of [Kinds].
func (s Schedule) Kinds() []Kind {
	var kinds []Kind
	for _, step := range s.Steps {
		kinds = append(kinds, step.Kind)
	}
	return inOrder(kinds)
}

func (s Schedule) sort() {
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return int(a.At - b.At) })
}

// Validate returns every fault of the schedule, joined, or nil.
func (s Schedule) Validate() error {
	var faults []error
	if s.Nodes < 1 || s.Holders < 0 {
		faults = append(faults, fmt.Errorf("%d nodes and %d holders cannot be", s.Nodes, s.Holders))
	}
	at := time.Duration(0)
	for i, p := range s.Phases {
		if p.From != at || p.Heal < p.From || p.Until < p.Heal {
			faults = append(faults, fmt.Errorf("phase %d is from %v, healed at %v, until %v: it has to begin at %v and go on in that order", i, p.From, p.Heal, p.Until, at))
		}
		at = p.Until
	}
	for i, step := range s.Steps {
		if err := s.validateStep(step); err != nil {
			faults = append(faults, fmt.Errorf("step %d (%s at %v): %w", i, step.Kind, step.At, err))
		}
	}
	return errors.Join(faults...)
}

func (s Schedule) validateStep(step Step) error {
	switch {
	case GroupOf(step.Kind) == "":
		return errors.New("there is no such fault")
	case step.At < 0 || step.For < 0 || step.Every < 0:
		return errors.New("a length is negative")
	case step.Every > 0 && step.Every < time.Millisecond:
		return fmt.Errorf("it comes and goes every %v: that is too often", step.Every)
	case step.Kind == PauseHolder && (step.Holder < 0 || step.Holder >= s.Holders):
		return fmt.Errorf("there is no holder %d of %d", step.Holder, s.Holders)
	case needsNode(step.Kind) && len(step.Nodes) == 0:
		return errors.New("it names no node")
	case !s.inPhase(step):
		return errors.New("it is outside the time of faults of every phase")
	}
	for _, node := range step.Nodes {
		if node < 0 || node >= s.Nodes {
			return fmt.Errorf("there is no node %d of %d", node, s.Nodes)
		}
	}
	return nil
}

func (s Schedule) inPhase(step Step) bool {
	return slices.ContainsFunc(s.Phases, func(p Phase) bool { return step.At >= p.From && step.At < p.Heal })
}

// needsNode reports whether a kind is about particular nodes. For the others none
// stands for all.
func needsNode(kind Kind) bool {
	switch GroupOf(kind) {
	case Network, Client, Clock:
		return false
	default:
		return kind != PauseHolder && kind != KillAll
	}
}
