package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/leasenode/leasenode/bench/profile/groups"
)

const (
	// topSites is how many places are shown of each kind.
	topSites = 5
	// least is the part of the whole below which a group is not shown.
	least = 0.01
)

// tables are what the profiles of runs say, side by side.
func tables(clients int, all []taken) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n", counted(clients))
	for _, process := range []struct {
		name string
		of   func(taken) map[string]*profile.Profile
	}{{"leader", func(t taken) map[string]*profile.Profile { return t.leader }}, {"follower", func(t taken) map[string]*profile.Profile { return t.follower }}} {
		write(&b, "CPU of the "+process.name+", µs an acquire", all, microseconds, func(t taken) []groups.Part { return groups.Of(process.of(t)["profile"], "cpu") }, "profile")
		for _, kind := range []struct{ title, path, value string }{
			{"memory allocated by the " + process.name + ", bytes an acquire", "allocs", "alloc_space"},
			{"goroutines of the " + process.name + " that wait for each other (most of them for work), ms a second", "block", "delay"},
			{"goroutines of the " + process.name + " that wait for a mutex, ms a second", "mutex", "delay"},
		} {
			scale := each
			if kind.value == "delay" {
				scale = milliseconds
			}
			write(&b, kind.title, all, scale, func(t taken) []groups.Part {
				sites := groups.Sites(process.of(t)[kind.path], kind.value)
				return sites[:min(topSites, len(sites))]
			}, kind.path)
		}
	}
	return b.String()
}

// scale turns a value of a profile into what is shown, given the seconds and the rate.
type scale func(value int64, seconds, rate float64) float64

func microseconds(v int64, seconds, rate float64) float64 { return float64(v) / 1e3 / (seconds * rate) }
func each(v int64, seconds, rate float64) float64         { return float64(v) / (seconds * rate) }
func milliseconds(v int64, seconds, _ float64) float64    { return float64(v) / 1e6 / seconds }

// write writes a table with a column for each run, in the order of the last.
func write(b *strings.Builder, title string, all []taken, by scale, parts func(taken) []groups.Part, kind string) {
	columns := make([]map[string]float64, len(all))
	var names []string
	head, line := "| "+title+" |", "| --- |"
	for i, t := range slices.Backward(all) {
		columns[i] = map[string]float64{}
		seconds := float64(t.leader[kind].DurationNanos) / 1e9
		sum := 0.0
		for _, p := range parts(t) {
			v := by(p.Value, seconds, t.rate[kind])
			columns[i][p.Name] = v
			sum += v
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
		if kind == "profile" {
			columns[i]["**all**"] = sum
		}
	}
	if kind == "profile" {
		names = append(names, "**all**")
	}
	for _, t := range all {
		head += fmt.Sprintf(" %s (%.0f/s) |", t.name, t.rate[kind])
		line += " --- |"
	}
	fmt.Fprintf(b, "%s\n%s\n", head, line)
	for _, name := range names {
		row, largest := "| "+strings.TrimPrefix(name, "github.com/leasenode/leasenode/")+" |", 0.0
		for _, column := range columns {
			row += " " + number(column, name) + " |"
			largest = max(largest, column[name]/max(column["**all**"], 1e-9))
		}
		if kind != "profile" || largest >= least {
			b.WriteString(row + "\n")
		}
	}
	b.WriteString("\n")
}

func number(column map[string]float64, name string) string {
	v, ok := column[name]
	if !ok {
		return "-"
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func counted(clients int) string {
	if clients == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", clients)
}
