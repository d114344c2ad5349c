package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// recordJSON is a record as scripts see it.
type recordJSON struct {
	Key              string            `json:"key"`
	Owner            string            `json:"owner"`
	Epoch            uint64            `json:"epoch"`
	LeaseUntilMS     int64             `json:"lease_until_ms"`
	RemainingMS      int64             `json:"remaining_ms"`
	ForgottenAtEpoch uint64            `json:"forgotten_at_epoch"`
	Attributes       map[string]string `json:"attributes"`
}

func recordOf(r lease.Record, remaining time.Duration) recordJSON {
	attributes := r.Attributes
	if attributes == nil {
		attributes = map[string]string{}
	}
	return recordJSON{
		Key:              r.Key,
		Owner:            r.Owner,
		Epoch:            r.Epoch,
		LeaseUntilMS:     r.LeaseUntil.Millis(),
		RemainingMS:      remaining.Milliseconds(),
		ForgottenAtEpoch: r.ForgottenAtEpoch,
		Attributes:       attributes,
	}
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// show prints v with -o json and calls table for people.
func (a *app) show(v any, table func(w io.Writer)) error {
	if a.output.value == "json" {
		return writeJSON(a.stdout, v)
	}
	var text strings.Builder
	table(&text)
	if _, err := io.WriteString(a.stdout, text.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// columns writes rows of cells as aligned columns, the first row being the head.
// The writer must be one that does not fail.
func columns(w io.Writer, rows [][]string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = table.Flush()
}

// cell is s in a table: quoted if it could be taken for something else.
func cell(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\"'\u00a0") {
		return strconv.Quote(s)
	}
	return s
}

// length is a duration that a person can read at a glance.
func length(d time.Duration) string {
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	return brief(d)
}

// brief is d exactly, without the zeros that [time.Duration] ends with: 1m, not 1m0s.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// attributesText is attributes in the order of their names.
func attributesText(attributes map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		pairs = append(pairs, name+"="+attributes[name])
	}
	return strings.Join(pairs, ", ")
}

// shellWord is s as one word of a POSIX shell.
func shellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
