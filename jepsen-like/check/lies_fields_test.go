package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// sort is what a field tells, and so how one would lie about it.
type sort int

const (
	aMoment   sort = iota // of the harness's clock
	anInstant             // of the cluster clock
	aDuration
	aNumber
	aName
	aWord // of a few
	aTruth
)

// fieldsOf are the fields of each kind of line. Stored and records are lists.
var fieldsOf = map[string]map[string]sort{
	"info": {"name": aName, "seed": aNumber, "length": aMoment, "began": aName},
	"op": {
		"id": aNumber, "client": aName, "node": aName, "kind": aWord, "key": aName, "owner": aName, "epoch": aNumber,
		"ttl": aDuration, "request_id": aName, "tries": aNumber, "call": aMoment, "return": aMoment, "outcome": aWord,
		"record.key": aName, "record.owner": aName, "record.epoch": aNumber, "record.lease_until": anInstant,
		"record.forgotten_at_epoch": aNumber, "now": anInstant, "remaining": aDuration, "changed": aTruth, "error": aName,
	},
	"belief": {"holder": aName, "key": aName, "epoch": aNumber, "from": aMoment, "until": aMoment},
	"write":  {"seq": aNumber, "holder": aName, "key": aName, "token": aNumber, "at": aMoment, "accepted": aTruth},
	"fault":  {"kind": aName, "from": aMoment, "until": aMoment, "detail": aName},
	"event":  {"node": aName, "what": aName, "at": aMoment, "detail": aName},
	"stored": {"index": aNumber, "op": aWord, "key": aName, "owner": aName, "epoch": aNumber, "at": anInstant, "wall": aName},
	"records": {
		"key": aName, "owner": aName, "epoch": aNumber, "lease_until": anInstant, "forgotten_at_epoch": aNumber,
	},
	"digest":   {"node": aName, "index": aNumber, "sum": aName},
	"recovery": {"node": aName, "healed": aMoment, "served": aMoment},
	"watched": {
		"watcher": aName, "seq": aNumber, "node": aName, "mark": aWord, "renewals": aTruth, "event": aWord, "key": aName,
		"owner": aName, "epoch": aNumber, "lease_until": anInstant, "forgotten_at_epoch": aNumber, "index": aNumber,
		"at": anInstant, "error": aName, "when": aMoment,
	},
}

// words are all that a field of a few can be.
var words = map[string][]any{
	"op.kind":    {"acquire", "renew", "release", "forget", "get", "get-stale"},
	"op.outcome": {"ok", "held", "lost", "unavailable", "unknown", "invalid", "exhausted"},
	"stored.op":  {"acquire", "renew", "release", "forget"},
	"watched.mark": {
		string(history.WatchBegan), string(history.WatchReset), string(history.WatchListed), string(history.WatchTold),
		string(history.WatchReached), string(history.WatchRefused),
	},
	"watched.event": {"acquired", "renewed", "released", "forgotten", "expired"},
}

// lies returns all lies about the story, by name: what is said of which sort of line.
func (s *story) lies() map[string][]lie {
	all := map[string][]lie{}
	for i, l := range s.lines {
		for kind, content := range l {
			list, isList := content.([]any)
			if !isList {
				s.lieAbout(all, place{line: i, kind: kind, at: -1}, content.(map[string]any))
				continue
			}
			for at, one := range list {
				s.lieAbout(all, place{line: i, kind: kind, at: at}, one.(map[string]any))
			}
		}
	}
	return all
}

// place is a line, or an element of one that is a list.
type place struct {
	line int
	kind string
	at   int // in the list, -1 if it is none
}

// of returns what is at p of a line.
func (p place) of(l map[string]any) map[string]any {
	if p.at >= 0 {
		return l[p.kind].([]any)[p.at].(map[string]any)
	}
	return l[p.kind].(map[string]any)
}

func (s *story) lieAbout(all map[string][]lie, p place, content map[string]any) {
	sortOf := strings.TrimSpace(p.kind + " " + variant(p.kind, content))
	add := func(what string, l lie) {
		l.line, l.what = p.line, what
		name := sortOf + ": " + what
		all[name] = append(all[name], l)
	}
	if p.at >= 0 {
		resize := func(n int) func(map[string]any) {
			return func(l map[string]any) {
				list := l[p.kind].([]any)
				l[p.kind] = append(append(slices.Clone(list[:p.at]), slices.Repeat(list[p.at:p.at+1], n)...), list[p.at+1:]...)
			}
		}
		add("removed", lie{times: 1, tell: resize(0)})
		add("repeated", lie{times: 1, tell: resize(2)})
	} else {
		add("removed", lie{times: 0})
		add("repeated", lie{times: 2})
	}
	for field, sort := range fieldsOf[p.kind] {
		if strings.HasPrefix(field, "record.") && content["record"] == nil {
			continue
		}
		is := get(content, field)
		for how, value := range s.otherwise(p.kind, field, sort, is) {
			if value != is {
				add(field+" "+how, lie{times: 1, tell: func(l map[string]any) { set(p.of(l), field, value) }})
			}
		}
	}
}

// variant sorts lines of a kind.
func variant(kind string, content map[string]any) string {
	switch kind {
	case "op":
		outcome := content["outcome"]
		if outcome == "held" || outcome == "lost" {
			outcome = "refused"
		}
		return fmt.Sprintf("%v/%v", content["kind"], outcome)
	case "stored":
		return content["op"].(string)
	case "write":
		return map[bool]string{true: "accepted", false: "refused"}[content["accepted"].(bool)]
	case "watched":
		return strings.TrimSuffix(fmt.Sprintf("%v/%v", content["mark"], get(content, "event")), "/")
	default:
		return ""
	}
}

func get(content map[string]any, field string) any {
	if outer, inner, nested := strings.Cut(field, "."); nested {
		return get(content[outer].(map[string]any), inner)
	}
	if value := content[field]; value != nil {
		return value
	}
	return ""
}

func set(content map[string]any, field string, value any) {
	if outer, inner, nested := strings.Cut(field, "."); nested {
		set(content[outer].(map[string]any), inner, value)
		return
	}
	content[field] = value
}

// otherwise returns what a field could be that is something else, by how it was changed.
func (s *story) otherwise(kind, field string, of sort, is any) map[string]any {
	ways := map[string]any{}
	number, _ := strconv.ParseInt(fmt.Sprint(is), 10, 64)
	steps := map[string]int64{}
	switch of {
	case aMoment:
		steps = map[string]int64{"40ms earlier": -40e6, "40ms later": 40e6, "6s earlier": -6e9, "6s later": 6e9}
	case anInstant:
		steps = map[string]int64{"3ms earlier": -3e6, "3ms later": 3e6, "6s earlier": -6e9, "6s later": 6e9}
	case aDuration:
		steps = map[string]int64{"3ms less": -3e6, "3ms more": 3e6, "6s more": 6e9, "none": -number}
	case aNumber:
		steps = map[string]int64{"one less": -1, "one more": 1}
	case aTruth:
		ways["turned"] = is != true
	case aName:
		ways["unknown"] = "nobody"
		if another := s.another(kind, field, is); another != nil {
			ways["another's"] = another
		}
	case aWord:
		for _, word := range words[kind+"."+field] {
			ways[fmt.Sprint(word)] = word
		}
	}
	for how, step := range steps {
		ways[how] = json.Number(fmt.Sprint(max(0, number+step)))
		if number == 0 && ways[how] == json.Number("0") {
			delete(ways, how)
		}
	}
	return ways
}

// another returns what the field is in the next line in which it is something else.
func (s *story) another(kind, field string, is any) any {
	for _, l := range s.lines {
		content := l[kind]
		if list, isList := content.([]any); isList {
			for _, one := range list {
				if value := get(one.(map[string]any), field); value != "" && value != is {
					return value
				}
			}
			continue
		}
		one, ok := content.(map[string]any)
		if !ok || strings.HasPrefix(field, "record.") && one["record"] == nil {
			continue
		}
		if value := get(one, field); value != "" && value != is {
			return value
		}
	}
	return nil
}
