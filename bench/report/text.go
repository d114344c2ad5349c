package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// none stands where there is nothing to show.
const none = "-"

// figure shows the figure of a system with its smallest and largest, and the note on it.
func (r Row) figure(s System) string {
	var parts []string
	if figures := r.Figures[s]; len(figures) > 0 {
		text := r.Unit.format(r.Figure(s))
		if len(figures) > 1 {
			text += fmt.Sprintf(" (%s to %s)", number(slices.Min(figures)), number(slices.Max(figures)))
		}
		parts = append(parts, text)
	}
	if note := r.Notes[s]; note != "" {
		parts = append(parts, note)
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, "; ")
}

// ratios shows the ratio to each peer that has figures.
func (r Row) ratios() string {
	var parts []string
	for _, peer := range []System{Etcd, ZooKeeper} {
		ratio, ok := r.Ratio(peer)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%s x %s", number(ratio.Value), peer)
		if !math.IsNaN(ratio.Low) && len(r.Figures[peer]) > 1 {
			text += fmt.Sprintf(" (%s to %s)", number(ratio.Low), number(ratio.High))
		}
		parts = append(parts, text)
	}
	return orNone(parts)
}

func (r Row) goals() string {
	var parts []string
	for _, g := range r.Goals {
		parts = append(parts, fmt.Sprintf("%s %s x %s", g.Sense, strconv.FormatFloat(g.Bound, 'g', -1, 64), g.Versus))
	}
	return orNone(parts)
}

func (r Row) verdicts() string {
	var parts []string
	for _, g := range r.Goals {
		text := string(r.Judge(g))
		if len(r.Goals) > 1 {
			text += " (" + string(g.Versus) + ")"
		}
		parts = append(parts, text)
	}
	return orNone(parts)
}

func orNone(parts []string) string {
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

func (s Sense) String() string {
	if s == AtMost {
		return "<="
	}
	return ">="
}

func (u Unit) format(v float64) string {
	switch u {
	case PerSecond:
		return number(v) + "/s"
	case Milliseconds:
		return number(v) + " ms"
	case Seconds:
		return number(v) + " s"
	case MiB:
		return number(v) + " MiB"
	case Microseconds:
		return number(v) + " µs"
	default:
		return number(v) + " B"
	}
}

// number shows three digits at least, and thousands apart.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.1 || v == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

// Count shows a whole number, thousands apart.
func Count(n int) string { return thousands(strconv.Itoa(n)) }

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
