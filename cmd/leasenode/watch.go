package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

func (a *app) watchCommand() *cobra.Command {
	var req lease.WatchRequest
	var key, after string
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print what happens to keys, as it happens",
		Long: `Print a line for each key that is acquired, released, forgotten, or whose lease has
ended, in the order of the log, until it is interrupted: for all keys, or those that
begin with PREFIX. With --sync the keys that somebody owns come first.

It goes on by itself when nodes fail, as long as it takes. A node keeps the latest
events only; if the watch was cut off for so long that some are lost, it ends and says
so, or with --sync lists the keys anew.

With -o json every line is an object. Lines that have a "position" can be gone on from
with --after, at any node: everything up to there has been printed.`,
		Example: `  leasenode watch
  leasenode watch orders/ --sync
  leasenode watch --key orders/7 --renewals -o json`,
		Args: arguments{what: "PREFIX", max: 1}.check,
	}
	flags := cmd.Flags()
	flags.BoolVar(&req.Renewals, "renewals", false, "print renewals too")
	flags.BoolVar(&req.Sync, "sync", false, "print the keys that are held now first")
	flags.StringVar(&key, "key", "", "watch this one key, instead of all with a prefix")
	flags.StringVar(&after, "after", "", "go on after this position")
	cmd.RunE = a.action(func(ctx context.Context, args []string) (err error) {
		req.Key, req.Selection = key, lease.HeldOnly
		if len(args) > 0 {
			req.Prefix = args[0]
		}
		if after != "" {
			if req.After, err = lease.ParsePosition(after); err != nil {
				return err
			}
		}
		return a.watch(ctx, req)
	})
	return cmd
}

// errNoBeginning ends a watch that no node has begun in time.
var errNoBeginning = errors.New("no node has begun it in time")

// watchQuiet is how long a watch that has begun may be without an update before the user
// is told: nodes send one every 4 s.
const watchQuiet = 7 * time.Second

// watch prints until ctx ends, which is no failure.
func (a *app) watch(ctx context.Context, req lease.WatchRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	return a.withCluster(func(c cluster) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		patience := time.AfterFunc(a.timeout, func() { cancel(errNoBeginning) })
		defer patience.Stop()
		silence := watchSilence{app: a}
		defer silence.end()
		listed, begun := watchListing{}, false
		for u, err := range c.Watch(ctx, req) {
			patience.Stop()
			if silence.end() && err == nil {
				fmt.Fprintln(a.stderr, "leasenode: the cluster answers again")
			}
			switch {
			case err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errNoBeginning):
				return nil
			case err != nil:
				return &readError{err}
			case !begun:
				begun = true
				if err := a.watchHead(); err != nil {
					return err
				}
			}
			for line := range listed.lines(u) {
				if err := a.showLine(line); err != nil {
					return err
				}
			}
			silence.begin()
		}
		return nil
	})
}

// watchSilence tells the user when no update comes: from that alone a cluster that does
// not answer cannot be told from one in which nothing happens.
type watchSilence struct {
	app   *app
	timer *time.Timer
	told  chan struct{} // closed when the user was
}

// begin is called when an update is awaited.
func (s *watchSilence) begin() {
	told := make(chan struct{})
	s.told = told
	s.timer = time.AfterFunc(watchQuiet, func() {
		defer close(told)
		fmt.Fprintf(s.app.stderr, "leasenode: the cluster has not answered for %s (asked %s); the watch goes on when it does\n", length(watchQuiet), strings.Join(s.app.endpoints, ", "))
	})
}

// end is called when one has come, or none will. It returns when nothing is being told
// any more, and whether the user was.
func (s *watchSilence) end() (told bool) {
	if s.timer == nil {
		return false
	}
	if told = !s.timer.Stop(); told {
		<-s.told
	}
	s.timer = nil
	return told
}

// watchLine is what is printed of a watch. Kind is that of an event, or one of the
// words below.
type watchLine struct {
	kind     string
	record   lease.Record
	index    uint64
	at       lease.Instant
	position lease.Position // zero if it is not known
}

// Words for what is no event.
const (
	listingWord = "listing" // a listing begins: what was printed before is void
	heldWord    = "held"    // a part of it
	syncedWord  = "synced"  // it is complete
)

// watchListing is a listing as far as it has come: of a key that comes again the last
// record counts, and what is held is known when it is complete.
type watchListing map[string]lease.Record

// lines returns what there is to print of u.
func (l watchListing) lines(u lease.WatchUpdate) iter.Seq[watchLine] {
	return func(yield func(watchLine) bool) {
		if u.Reset {
			clear(l)
			if !yield(watchLine{kind: listingWord}) {
				return
			}
		}
		for _, r := range u.Records {
			l[r.Key] = r
		}
		if u.Synced {
			for _, key := range slices.Sorted(maps.Keys(l)) {
				if r := l[key]; !r.OverAt(u.Now) && !yield(watchLine{kind: heldWord, record: r}) {
					return
				}
			}
			clear(l)
			if !yield(watchLine{kind: syncedWord, at: u.Now, index: u.Position.Index, position: u.Position}) {
				return
			}
		}
		for i, e := range u.Events {
			line := watchLine{kind: e.Kind.String(), record: e.Record, index: e.Index, at: e.At}
			if last := i == len(u.Events)-1; u.Position.Index > 0 && (last || u.Events[i+1].Index != e.Index) {
				line.position = lease.Position{ClusterID: u.Position.ClusterID, Index: e.Index}
			}
			if !yield(line) {
				return
			}
		}
	}
}

type eventJSON struct {
	Index            uint64            `json:"index"`
	Event            string            `json:"event"`
	Key              string            `json:"key"`
	Owner            string            `json:"owner"`
	Epoch            uint64            `json:"epoch"`
	AtMS             int64             `json:"at_ms"`
	LeaseUntilMS     int64             `json:"lease_until_ms"`
	ForgottenAtEpoch uint64            `json:"forgotten_at_epoch"`
	Attributes       map[string]string `json:"attributes"`
	Position         string            `json:"position,omitempty"`
}

type listingJSON struct {
	Event    string `json:"event"`
	Index    uint64 `json:"index,omitempty"`
	AtMS     int64  `json:"at_ms,omitempty"`
	Position string `json:"position,omitempty"`
}

func (l watchLine) json() any {
	position := ""
	if l.position != (lease.Position{}) {
		position = l.position.String()
	}
	if l.record.Key == "" {
		return listingJSON{Event: l.kind, Index: l.index, AtMS: l.at.Millis(), Position: position}
	}
	r := recordOf(l.record, 0)
	return eventJSON{
		Index: l.index, Event: l.kind, Key: r.Key, Owner: r.Owner, Epoch: r.Epoch, AtMS: l.at.Millis(),
		LeaseUntilMS: r.LeaseUntilMS, ForgottenAtEpoch: r.ForgottenAtEpoch, Attributes: r.Attributes, Position: position,
	}
}

// showLine prints a line at once.
func (a *app) showLine(l watchLine) error {
	return a.show(l.json(), func(w io.Writer) {
		switch l.kind {
		case listingWord:
			fmt.Fprintln(w, "these are held now:")
		case syncedWord:
			fmt.Fprintln(w, "that is all; from here on it is what happens:")
		default:
			index := "-"
			if l.index > 0 {
				index = strconv.FormatUint(l.index, 10)
			}
			r := l.record
			writeWatchRow(w, index, l.kind, cell(r.Key), cell(r.Owner), strconv.FormatUint(r.Epoch, 10), attributesText(r.Attributes))
		}
	})
}

// watchHead prints the names of the columns, for people.
func (a *app) watchHead() error {
	if a.output.value == "json" {
		return nil
	}
	return a.show(nil, func(w io.Writer) { writeWatchRow(w, "INDEX", "EVENT", "KEY", "OWNER", "EPOCH", "ATTRIBUTES") })
}

// writeWatchRow writes a row of columns whose widths are fixed, since nobody knows what
// comes; what is wider moves the rest of its row.
func writeWatchRow(w io.Writer, index, event, key, owner, epoch, attributes string) {
	row := fmt.Sprintf("%-8s  %-9s  %-24s  %-16s  %-5s  %s", index, event, key, owner, epoch, attributes)
	fmt.Fprintln(w, strings.TrimRight(row, " "))
}
