package workload

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// BeliefSink takes beliefs and writes down: a [history.Recorder].
type BeliefSink interface {
	AddBelief(b history.Belief)
	AddWrite(w history.Write)
}

// Ledger makes beliefs of what holders say: it joins what they say again and again into
// one time, and cuts it short where they have ended it. It is safe for concurrent use.
// Make one with [NewLedger], and close it in the end.
type Ledger struct {
	origin time.Duration
	sink   BeliefSink

	mu         sync.Mutex
	spans      map[holding]Span // that may still grow or be cut
	unnumbered []history.Write  // without a number from their resource
	grants     map[Grant]struct{}
}

type holding struct {
	holder string
	grant  Grant
}

// NewLedger returns a Ledger that tells sink. Moments of holders have origin taken from
// them: the reading of their clock at which the harness's was 0.
func NewLedger(origin time.Duration, sink BeliefSink) *Ledger {
	return &Ledger{origin: origin, sink: sink, spans: map[holding]Span{}, grants: map[Grant]struct{}{}}
}

// Grants returns how many grants holders have spoken of.
func (l *Ledger) Grants() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}

// Take takes in what a line of a holder says.
func (l *Ledger) Take(holder string, line Line) {
	switch sink := l.Of(holder); line.Verb {
	case "held":
		sink.Held(line.Grant, line.Span)
	case "released":
		sink.Released(line.Grant, line.At)
	case "fenced":
		sink.Fenced(line.Grant, line.At)
	case "wrote":
		sink.Wrote(history.Write{Seq: line.Seq, Holder: holder, Key: line.Grant.Key, Token: line.Grant.Epoch, At: line.At, Accepted: line.Accepted})
	}
}

// Of returns the sink for one holder, by name.
func (l *Ledger) Of(holder string) HoldSink { return ledgerPage{l, holder} }

// Close tells what is still open: nobody says anything more.
func (l *Ledger) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of := range l.spans {
		l.closeLocked(of)
	}
	l.numberLocked()
}

func (l *Ledger) closeLocked(of holding) {
	span, ok := l.spans[of]
	if !ok {
		return
	}
	delete(l.spans, of)
	if span.From < span.Until {
		l.sink.AddBelief(history.Belief{
			Holder: of.holder, Key: of.grant.Key, Epoch: of.grant.Epoch,
			From: span.From - l.origin, Until: span.Until - l.origin,
		})
	}
}

// numberLocked numbers the writes that have no number, by their moments.
func (l *Ledger) numberLocked() {
	slices.SortStableFunc(l.unnumbered, func(a, b history.Write) int { return cmp.Compare(a.At, b.At) })
	seqs := map[string]int{}
	for _, w := range l.unnumbered {
		seqs[w.Key]++
		w.Seq = seqs[w.Key]
		l.sink.AddWrite(w)
	}
	l.unnumbered = nil
}

// ledgerPage is the ledger for one holder.
type ledgerPage struct {
	ledger *Ledger
	holder string
}

// Held implements [HoldSink].
func (p ledgerPage) Held(g Grant, span Span) {
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	of := holding{p.holder, g}
	l.grants[g] = struct{}{}
	if known, ok := l.spans[of]; ok && span.From <= known.Until {
		l.spans[of] = Span{min(known.From, span.From), max(known.Until, span.Until)}
		return
	}
	l.closeLocked(of)
	l.spans[of] = span
}

// Released implements [HoldSink].
func (p ledgerPage) Released(g Grant, at time.Duration) { p.cut(g, at) }

// Fenced implements [HoldSink].
func (p ledgerPage) Fenced(g Grant, at time.Duration) { p.cut(g, at) }

func (p ledgerPage) cut(g Grant, at time.Duration) {
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	of := holding{p.holder, g}
	if span, ok := l.spans[of]; ok {
		l.spans[of] = Span{span.From, min(span.Until, at)}
		l.closeLocked(of)
	}
}

// Wrote implements [HoldSink].
func (p ledgerPage) Wrote(w history.Write) {
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	w.At -= l.origin
	if w.Seq == 0 {
		l.unnumbered = append(l.unnumbered, w)
		return
	}
	l.sink.AddWrite(w)
}
