package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// timeline is what the page's script draws. All times are milliseconds on the harness's
// clock.
type timeline struct {
	Length float64     `json:"length"`
	Owners []string    `json:"owners"`
	Keys   []keyLine   `json:"keys"`
	Faults []faultBand `json:"faults"`
	Nodes  []nodeLine  `json:"nodes"`
	Marks  []mark      `json:"marks"`
}

// keyLine is one key: who held it, by its holders and by the store.
type keyLine struct {
	Name    string `json:"name"`
	Beliefs []bar  `json:"beliefs"`
	Store   []bar  `json:"store"`
}

// bar is a time for which an owner held an epoch.
type bar struct {
	From  float64 `json:"f"`
	Until float64 `json:"u"`
	Owner int     `json:"o"`
	Epoch uint64  `json:"e"`
}

type faultBand struct {
	Kind  string  `json:"kind"`
	Text  string  `json:"text"`
	From  float64 `json:"f"`
	Until float64 `json:"u"`
}

type nodeLine struct {
	Name   string      `json:"name"`
	Events []nodeEvent `json:"events"`
}

type nodeEvent struct {
	At     float64 `json:"at"`
	What   string  `json:"what"`
	Detail string  `json:"detail,omitempty"`
}

// mark is one violation. Key is an index into Keys, or -1.
type mark struct {
	Number int     `json:"n"`
	Key    int     `json:"key"`
	From   float64 `json:"f"`
	Until  float64 `json:"u"`
	Text   string  `json:"text"`
}

func timelineOf(run history.Run, violations []violation) timeline {
	t := timeline{Length: millis(lengthOf(run)), Owners: []string{}, Keys: []keyLine{}, Faults: []faultBand{}, Nodes: nodeLines(run), Marks: []mark{}}
	owners := map[string]int{}
	owner := func(name string) int {
		if _, known := owners[name]; !known {
			owners[name] = len(t.Owners)
			t.Owners = append(t.Owners, name)
		}
		return owners[name]
	}
	beliefs, store := beliefBars(run, owner), storeBars(run, owner)
	lines := map[string]int{}
	for _, key := range keysOf(run) {
		lines[key] = len(t.Keys)
		t.Keys = append(t.Keys, keyLine{Name: key, Beliefs: orEmpty(beliefs[key]), Store: orEmpty(store[key])})
	}
	for _, f := range run.Faults {
		t.Faults = append(t.Faults, faultBand{Kind: f.Kind, Text: faultText(f), From: millis(f.From), Until: millis(f.Until)})
	}
	for _, v := range violations {
		line, known := lines[v.Key]
		if !known {
			line = -1
		}
		t.Marks = append(t.Marks, mark{Number: v.Number, Key: line, From: millis(v.From), Until: millis(v.Until), Text: v.Check + ": " + v.Text})
	}
	return t
}

func orEmpty(bars []bar) []bar {
	if bars == nil {
		return []bar{}
	}
	return bars
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func faultText(f history.Fault) string {
	text := f.Kind
	for i, target := range f.Targets {
		if i == 0 {
			text += " "
		} else {
			text += ", "
		}
		text += target
	}
	if f.Detail != "" {
		text += " (" + f.Detail + ")"
	}
	return text
}

// lengthOf returns how long run was, or how far its records go.
func lengthOf(run history.Run) time.Duration {
	length := run.Info.Length
	for _, op := range run.Ops {
		length = max(length, op.Return)
	}
	for _, f := range run.Faults {
		length = max(length, f.Until)
	}
	for _, e := range run.Events {
		length = max(length, e.At)
	}
	return max(length, time.Millisecond)
}

func keysOf(run history.Run) []string {
	keys := map[string]bool{}
	for _, op := range run.Ops {
		keys[op.Key] = true
	}
	for _, b := range run.Beliefs {
		keys[b.Key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

func nodeLines(run history.Run) []nodeLine {
	events := map[string][]nodeEvent{}
	for _, e := range run.Events {
		events[e.Node] = append(events[e.Node], nodeEvent{At: millis(e.At), What: e.What, Detail: e.Detail})
	}
	lines := []nodeLine{}
	for _, node := range slices.Sorted(maps.Keys(events)) {
		lines = append(lines, nodeLine{Name: node, Events: events[node]})
	}
	return lines
}

// beliefBars merges the beliefs of each grant where they overlap or touch.
func beliefBars(run history.Run, owner func(string) int) map[string][]bar {
	beliefs := slices.SortedStableFunc(slices.Values(run.Beliefs), func(a, b history.Belief) int { return cmp.Compare(a.From, b.From) })
	type grant struct {
		key, holder string
		epoch       uint64
	}
	latest := map[grant]int{} // the index of the grant's last bar
	bars := map[string][]bar{}
	for _, b := range beliefs {
		if b.Until <= b.From {
			continue
		}
		g := grant{b.Key, b.Holder, b.Epoch}
		if i, known := latest[g]; known && millis(b.From) <= bars[b.Key][i].Until {
			bars[b.Key][i].Until = max(bars[b.Key][i].Until, millis(b.Until))
			continue
		}
		latest[g] = len(bars[b.Key])
		bars[b.Key] = append(bars[b.Key], bar{From: millis(b.From), Until: millis(b.Until), Owner: owner(b.Holder), Epoch: b.Epoch})
	}
	return bars
}
