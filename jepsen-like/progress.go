package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

const (
	redrawEvery = 250 * time.Millisecond // in a terminal
	lineEvery   = 10 * time.Second       // elsewhere
	usualWidth  = 80                     // of a terminal that does not tell
)

// progress tells how a run goes: in a terminal in one line that is redrawn, elsewhere
// in a line now and then.
type progress struct {
	out    io.Writer
	length time.Duration
	now    func() time.Duration
	tally  *tally
	ledger *workload.Ledger
}

// loop tells until ctx ends.
func (p progress) loop(ctx context.Context) {
	every := lineEvery
	terminal, live := terminalOf(p.out)
	if live {
		every = redrawEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if live {
				fmt.Fprint(p.out, "\r\x1b[K")
			}
			return
		case <-ticker.C:
		}
		if live {
			fmt.Fprintf(p.out, "\r\x1b[K%s", cut(p.line(), widthOf(terminal)))
		} else {
			fmt.Fprintln(p.out, p.line())
		}
	}
}

func (p progress) line() string {
	counts, active := p.tally.now()
	left := max(0, p.length-p.now()).Round(time.Second)
	return fmt.Sprintf("%v left · %d operations (%s answered) · %d grants · %s",
		left, counts.ops, counts.share(), counts.grants+p.ledger.Grants(), activeText(active))
}

func activeText(active []history.Fault) string {
	if len(active) == 0 {
		return "no faults now"
	}
	var parts []string
	for _, f := range active {
		parts = append(parts, f.Kind+" "+strings.Join(f.Targets, ","))
	}
	return strings.Join(parts, " · ")
}

// cut keeps a line that is redrawn from running over the edge.
func cut(line string, most int) string {
	runes := []rune(line)
	if len(runes) <= most {
		return line
	}
	return string(runes[:most-1]) + "…"
}

// terminalOf returns the terminal that w is, if it is one.
func terminalOf(w io.Writer) (*os.File, bool) {
	file, ok := w.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := file.Stat()
	return file, err == nil && info.Mode()&os.ModeCharDevice != 0
}
