package check_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
)

var (
	liesIn   = flag.String("history", "", "a history.jsonl that passes, to tell lies about in place of the one in testdata; its exceptions are not looked for")
	liesEach = flag.Int("each", 1, "how many places of a history to try each lie at")
	liesOf   = flag.String("lie", "", "only lies that have this in their name; what passes is told place by place")
)

// A history in which one line was changed by hand, in any field and any plausible way, is
// no history of a cluster that keeps its promises, or the change says why it may be one.
// The histories are of simulations with 3 nodes, of 5 s, by their seeds.
func TestEveryLieIsSeen(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "simulated-*.jsonl"))
	if *liesIn != "" {
		paths = []string{*liesIn}
	}
	if err != nil || len(paths) == 0 {
		t.Fatal("there is no history", err)
	}
	passed := map[string][]string{}
	for _, path := range paths {
		s := readStory(t, path)
		if v := s.judge(t, nil); v.Status() != check.Pass {
			t.Fatalf("%s, unchanged:\n%s", path, v.Summary())
		}
		s.tellAll(t, passed)
	}
	unseen := 0
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		if !slices.ContainsFunc(exceptions, func(e exception) bool { return e.covers(name) }) {
			unseen++
			t.Errorf("%s: passes at %s", name, strings.Join(passed[name], ", "))
		}
	}
	t.Logf("%d sorts of lies pass at times, %d without a reason", len(passed), unseen)
	if *liesIn != "" || *liesOf != "" || lieEvery > 1 {
		return
	}
	for _, e := range exceptions {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(passed)), e.covers) {
			t.Errorf("%q is an exception, and was seen at all places", e.lies)
		}
	}
}

// tellAll tells each lie at some places, and notes which passed, and where.
func (s *story) tellAll(t *testing.T, passed map[string][]string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	lies, tried, told := s.lies(), 0, 0
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, name := range slices.Sorted(maps.Keys(lies)) {
		if !strings.Contains(name, *liesOf) {
			continue
		}
		told++
		if told%lieEvery != 0 && *liesOf == "" {
			continue
		}
		for _, l := range spread(lies[name], *liesEach) {
			free <- struct{}{}
			tried++
			all.Go(func() {
				defer func() { <-free }()
				if v := s.judge(t, &l); v.Status() == check.Pass {
					mu.Lock()
					defer mu.Unlock()
					passed[name] = append(passed[name], fmt.Sprintf("%s:%d", filepath.Base(s.path), l.line+1))
				}
			})
		}
	}
	all.Wait()
	t.Logf("%s: %d lies of %d sorts told", s.path, tried, len(lies))
}

// spread returns n of all, from the first to the last.
func spread(all []lie, n int) []lie {
	if len(all) <= n {
		return all
	}
	var some []lie
	for i := range n {
		some = append(some, all[(2*i+1)*len(all)/(2*n)])
	}
	return some
}

// story is a history, line by line.
type story struct {
	path    string
	raw     [][]byte
	lines   []map[string]any
	read    []history.Run // what each line makes of an empty run
	options check.Options
}

func readStory(t *testing.T, path string) *story {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{path: path, options: check.Options{Rate: 0.01, Recovery: 30 * time.Second}}
	for raw := range bytes.Lines(data) {
		one, err := history.Read(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		s.raw, s.lines, s.read = append(s.raw, raw), append(s.lines, understand(raw)), append(s.read, one)
	}
	return s
}

func understand(raw []byte) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var l map[string]any
	if err := decoder.Decode(&l); err != nil {
		panic(err) // it is a line of a file that was read
	}
	return l
}

// lie is one line told otherwise.
type lie struct {
	line int
	what string // was changed
	tell func(map[string]any)
	// times is how often the line is there: 0 if it was removed.
	times int
}

// judge judges the story with a lie in it, if there is one. What cannot be read is no
// pass either.
func (s *story) judge(t *testing.T, l *lie) check.Verdict {
	var run history.Run
	for i, one := range s.read {
		if l == nil || i != l.line {
			join(&run, one)
			continue
		}
		for range l.times {
			one, err := history.Read(bytes.NewReader(l.told(s.raw[i])))
			if err != nil {
				return check.Verdict{Checks: []check.Check{{Name: "read", Status: check.Fail}}}
			}
			join(&run, one)
		}
	}
	v := check.Judge(run, s.options)
	if l != nil && *liesOf != "" {
		t.Logf("line %d, %s:\n%s", l.line+1, l.what, v.Summary())
	}
	return v
}

// join adds to a run what another line has, as [history.Read] does.
func join(run *history.Run, one history.Run) {
	run.Ops, run.Beliefs, run.Writes = append(run.Ops, one.Ops...), append(run.Beliefs, one.Beliefs...), append(run.Writes, one.Writes...)
	run.Faults, run.Events, run.Digests = append(run.Faults, one.Faults...), append(run.Events, one.Events...), append(run.Digests, one.Digests...)
	run.Recoveries, run.Watched = append(run.Recoveries, one.Recoveries...), append(run.Watched, one.Watched...)
	if one.Stored != nil {
		run.Stored = one.Stored
	}
	if one.Records != nil {
		run.Records = one.Records
	}
	if one.Info.Name != "" {
		run.Info = one.Info
	}
}

func (l *lie) told(raw []byte) []byte {
	if l.tell == nil {
		return raw
	}
	changed := understand(raw)
	l.tell(changed)
	data, err := json.Marshal(changed)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return append(data, '\n')
}
