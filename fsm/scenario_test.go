package fsm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// TestScenarios runs the files in testdata/scenarios: commands, each followed by
// what came of it, as lines that begin with "=". Lines that begin with "+" are
// mutations of the same entry as the one before. Run it with -update to write the
// results anew, and read them.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "scenarios/"+filepath.Base(path), []byte(runScenario(t, string(text))))
		})
	}
}

func runScenario(t *testing.T, text string) string {
	s := &scenario{machine: openMachine(t, fsm.Settings{MaxKeys: 4, HistoryGrants: 3, HistoryRenewals: 2, HistoryOperations: 100})}
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "="):
			continue
		case !strings.HasPrefix(line, "+"):
			s.flush()
		}
		s.out.WriteString(line)
		if words := strings.Fields(strings.TrimPrefix(line, "+")); len(words) > 0 && words[0] != "#" {
			s.run(words)
		}
	}
	s.flush()
	return s.out.String()
}

type scenario struct {
	*machine
	out     strings.Builder
	waiting []lease.Mutation
}

func (s *scenario) say(format string, args ...any) { fmt.Fprintf(&s.out, "= "+format+"\n", args...) }

// flush applies the mutations that are waiting, as one entry.
func (s *scenario) flush() {
	if len(s.waiting) == 0 {
		return
	}
	for _, outcome := range s.do(s.waiting...) {
		s.say("%s", describe(outcome))
	}
	s.waiting = nil
}

func (s *scenario) run(words []string) {
	argument := append(words, "", "", "")[1]
	switch words[0] {
	case "at":
		since, err := time.ParseDuration(argument)
		if err != nil {
			s.t.Fatal(err)
		}
		s.since = since
	case "acquire", "renew", "release", "forget":
		s.waiting = append(s.waiting, s.parse(words))
	case "get":
		view := s.get(argument)
		s.say("%s at %v", recordText(view.Record), sinceBegan(view.Now))
	case "list":
		s.list(words[1:])
	case "history":
		for _, e := range s.history(argument, 2) {
			s.say("%d %v %s of %s epoch %d at %v", e.Index, e.Op, e.Key, e.Owner, e.Epoch, sinceBegan(e.At))
		}
	case "tick":
		s.say("%v", s.log(batch(s.stamp())))
	case "open":
		s.term++
		opened := s.log(fsm.EncodeOpening(fsm.Opening{Wall: began.Add(s.since)})).(fsm.Opened)
		s.say("term %d at %v", opened.Term, sinceBegan(opened.Now))
	case "stale-tick":
		stamp := s.stamp()
		stamp.Term--
		s.say("%v", s.log(batch(stamp)))
	case "reinstall":
		s.machine = s.restored()
	default:
		s.t.Fatalf("no such command: %q", words)
	}
}

func (s *scenario) list(words []string) {
	q := fsm.ListQuery{}
	for _, word := range words {
		if word == "held" {
			q.Selection = lease.HeldOnly
		} else {
			q.Prefix = word
		}
	}
	view, err := s.List(q)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, record := range view.Records {
		s.say("%s", recordText(record))
	}
}

// parse reads: op key owner [epoch=N] [ttl=D] [id=I] [name:value].
func (s *scenario) parse(words []string) lease.Mutation {
	ops := []lease.Op{lease.OpAcquire, lease.OpRenew, lease.OpRelease, lease.OpForget}
	m := lease.Mutation{Key: strings.Trim(words[1], `"`), Owner: strings.Trim(words[2], `"`), TTL: time.Second}
	m.Op = ops[slices.IndexFunc(ops, func(op lease.Op) bool { return op.String() == words[0] })]
	var err error
	for _, word := range words[3:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "epoch":
			m.Epoch, err = strconv.ParseUint(value, 10, 64)
		case "ttl":
			m.TTL, err = time.ParseDuration(value)
		case "id":
			m.RequestID = value
		default:
			attribute, content, _ := strings.Cut(word, ":")
			m.Attributes = map[string]string{attribute: content}
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return m
}

func describe(o lease.Outcome) string {
	var held *lease.HeldError
	var lost *lease.LostError
	switch {
	case errors.As(o.Err, &held):
		return fmt.Sprintf("held: %s, %v left", recordText(held.Record), held.Remaining)
	case errors.As(o.Err, &lost):
		return fmt.Sprintf("lost: %s, %v left", recordText(lost.Record), lost.Remaining)
	case o.Err != nil:
		return o.Err.Error()
	}
	done := "done"
	if !o.Answer.Changed {
		done = "found"
	}
	return fmt.Sprintf("%s: %s at %v, %v left", done, recordText(o.Answer.Record), sinceBegan(o.Answer.Now), o.Answer.Remaining)
}

func recordText(r lease.Record) string {
	if r.Epoch == 0 {
		return fmt.Sprintf("%s never granted", r.Key)
	}
	text := fmt.Sprintf("%s of %s epoch %d until %v", r.Key, r.Owner, r.Epoch, sinceBegan(r.LeaseUntil))
	if r.ForgottenAtEpoch > 0 {
		text += fmt.Sprintf(" forgotten at %d", r.ForgottenAtEpoch)
	}
	if len(r.Attributes) > 0 {
		text += fmt.Sprintf(" %v", r.Attributes)
	}
	return text
}

func sinceBegan(t lease.Instant) time.Duration { return t.Sub(instant(0)) }
