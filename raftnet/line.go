package raftnet

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// lines are who waits for which key, under one reign of this node. They are the
// leader's alone and are lost with the reign: whoever waits then joins the next
// leader's.
//
// The safety of a wait rests on two rules. A poll is answered with the grant of an
// entry only if it was with the leader when the entry was stamped, since its holder
// counts from its sending: each attempt in an entry belongs to one poll, and only that
// one is answered with its outcome. And a grant is given back only if nobody can come
// to know of it: whatever could, a later poll or any other acquire with the same
// request id, is noted under mu before it joins the queue; and the release joins the
// queue under mu, so that what comes later finds the grant ended.
//
// The queue is used with mu held, never the other way round.
type lines struct {
	queue *queue
	life  context.Context // the node's
	tell  *Metrics
	// count is how many attempts are known; with none, packing has nothing to look for.
	count atomic.Int64
	// wake gets a signal, never more than one pending, when something may be due sooner.
	wake chan struct{}

	mu     sync.Mutex
	open   bool // whether there is a reign
	keys   map[string]*line
	away   map[*waiter]time.Duration // who is between two polls: when the place is lost
	dues   dueLines
	number uint64
	// now and reading are the monotonic and the cluster clock.
	now     func() time.Duration
	reading func() (lease.Instant, bool)
}

// line is who waits for one key.
type line struct {
	key   string
	order []*waiter // by since, then number
	known map[attemptName]*waiter
	// record is the latest that is known of the key, learnt from the entry of number
	// seen; its epoch is 0 before anything is known.
	record lease.Record
	seen   uint64
	// nudged says that the first in line is being tried because the lease has ended.
	nudged bool
	due    lease.Instant // when to try, or noInstant
	index  int           // in dues, or -1
}

// attemptName names an attempt to acquire a key.
type attemptName struct{ owner, requestID string }

// waiter is an attempt that waits, or of which something is still under way.
type waiter struct {
	line   *line
	name   attemptName
	since  time.Duration // on the monotonic clock, less what it had waited before
	number uint64
	inLine bool
	// proposed says that the attempt has had a place in the log of this reign. Before,
	// it is not put into entries out of the queue's order: a release of an earlier
	// grant of it may be ahead of it in the queue.
	proposed bool
	poll     *poll // the latest, if it is unanswered
	polls    int   // how many are unanswered
	inFlight int   // how many items of it, queued or packed, have no outcome
	// grant is one that was made for a call that had ended, and that nobody knows of.
	grant   *lease.Record
	won     bool // a grant was made or found
	told    bool // somebody was told of a grant
	claimed bool // an acquire that does not wait has the same name
}

// poll is one call that waits.
type poll struct {
	lines    *lines
	waiter   *waiter
	ctx      context.Context
	mutation lease.Mutation
	body     []byte
	wait     time.Duration
	inFlight int
	// first is the item that was queued for this poll itself; nil if there was none.
	first *item
	// over says that the poll is to be answered as soon as nothing of it is in flight.
	over     bool
	answered bool
	outcome  lease.Outcome // set before done is closed
	done     chan struct{}
}

const noInstant = lease.Instant(1<<63 - 1)

func newLines(life context.Context, q *queue, m *Metrics) *lines {
	return &lines{queue: q, life: life, tell: m, wake: make(chan struct{}, 1), keys: map[string]*line{}, away: map[*waiter]time.Duration{}}
}

// begin opens the lines of a reign.
func (ls *lines) begin() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open = true
}

// end closes the lines and tells everyone in them. What is in an entry already has its
// outcome from that.
func (ls *lines) end(err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open = false
	for _, l := range ls.keys {
		for _, w := range l.known {
			w.inLine = false
			w.line = nil
			switch p := w.poll; {
			case p == nil:
			case ls.withdrawn(p):
				ls.answer(p, lease.Outcome{Err: err})
			default:
				p.over = true
			}
		}
	}
	ls.keys, ls.away, ls.dues = map[string]*line{}, map[*waiter]time.Duration{}, nil
	ls.count.Store(0)
}

// join takes a poll in. Once it is joined it has to be waited for, and left.
func (ls *lines) join(ctx context.Context, lp lease.Poll) (*poll, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.open {
		return nil, fmt.Errorf("this node does not lead: %w", lease.ErrUnavailable)
	}
	w, err := ls.waiterFor(lp)
	if err != nil {
		return nil, err
	}
	p := &poll{lines: ls, waiter: w, ctx: ctx, mutation: lp.Mutation, body: fsm.EncodeMutation(lp.Mutation), wait: lp.Wait, done: make(chan struct{})}
	if old := w.poll; old != nil {
		if ls.withdrawn(old) {
			ls.answer(old, ls.stillHeld(w))
		} else {
			old.over = true
		}
	}
	w.poll = p
	w.polls++
	delete(ls.away, w)
	// While an earlier poll is in an entry, its outcome is not this one's: this one has
	// to be told by an entry of its own.
	if !w.proposed || w.inFlight > 0 || !w.inLine {
		if err := ls.propose(p); err != nil {
			ls.answer(p, lease.Outcome{Err: err})
			ls.remove(w)
			ls.tidy(w)
			return nil, err
		}
	}
	ls.schedule(w.line)
	return p, nil
}

// waiterFor returns the waiter of that name, put into line by how long it has waited
// if it is new.
func (ls *lines) waiterFor(lp lease.Poll) (*waiter, error) {
	m := lp.Mutation
	l := ls.keys[m.Key]
	name := attemptName{m.Owner, m.RequestID}
	if l != nil && l.known[name] != nil {
		w := l.known[name]
		if !w.inLine && !w.won { // it has left, and is new again
			w.since = ls.now() - lp.Waited
			ls.insert(w)
		}
		return w, nil
	}
	switch {
	case ls.count.Load() >= lease.MaxWaiters:
		return nil, &lease.ExhaustedError{Resource: "waiters", Limit: lease.MaxWaiters}
	case l != nil && len(l.known) >= lease.MaxWaitersPerKey:
		return nil, &lease.ExhaustedError{Resource: "waiters for one key", Limit: lease.MaxWaitersPerKey, Key: m.Key}
	case l == nil:
		l = &line{key: m.Key, known: map[attemptName]*waiter{}, due: noInstant, index: -1}
		ls.keys[m.Key] = l
	}
	ls.number++
	w := &waiter{line: l, name: name, since: ls.now() - lp.Waited, number: ls.number}
	l.known[name] = w
	ls.count.Add(1)
	ls.insert(w)
	return w, nil
}

// insert puts w into the line.
func (ls *lines) insert(w *waiter) {
	w.inLine = true
	at, _ := w.line.find(w)
	w.line.order = slices.Insert(w.line.order, at, w)
}

// find returns where in the order w is, or would be.
func (l *line) find(w *waiter) (int, bool) {
	return slices.BinarySearchFunc(l.order, w, func(a, b *waiter) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.number, b.number))
	})
}

// head returns the first in line that has a poll with the leader, of that owner unless
// it is empty; nil if there is none. Whoever is between two polls, or has gone, is
// passed over.
func (l *line) head(owner string) *waiter {
	for _, w := range l.order {
		if p := w.poll; p != nil && w.proposed && !p.over && p.ctx.Err() == nil && (owner == "" || w.name.owner == owner) {
			return w
		}
	}
	return nil
}

// propose queues an item of p's own.
func (ls *lines) propose(p *poll) error {
	c := newCall(p.ctx, [][]byte{p.body})
	c.items[0].mutation, c.items[0].poll = &p.mutation, p
	if err := ls.queue.add(c); err != nil {
		return err
	}
	p.first = &c.items[0]
	p.inFlight++
	p.waiter.inFlight++
	return nil
}

// withdrawn takes back what of p is only queued, and reports whether then nothing of p
// is in flight, so that it can be answered.
func (ls *lines) withdrawn(p *poll) bool {
	if p.first != nil && p.first.state.CompareAndSwap(waiting, dropped) {
		p.inFlight--
		p.waiter.inFlight--
	}
	return p.inFlight == 0
}

// answer gives p its outcome.
func (ls *lines) answer(p *poll, outcome lease.Outcome) {
	p.answered, p.outcome = true, outcome
	close(p.done)
	w := p.waiter
	w.polls--
	if w.poll != p {
		return
	}
	w.poll = nil
	if w.inLine {
		ls.away[w] = ls.now() + p.wait
		signal(ls.wake)
	}
}

// stillHeld is the outcome of a poll that ends without a grant.
func (ls *lines) stillHeld(w *waiter) lease.Outcome {
	l := w.line
	if l == nil || l.record.Epoch == 0 {
		return lease.Outcome{Err: fmt.Errorf("this poll has ended before the key was looked at: %w", lease.ErrUnavailable)}
	}
	held := &lease.HeldError{Record: l.record}
	if now, ok := ls.reading(); ok {
		held.Remaining = l.record.RemainingAt(now)
	}
	if at, in := l.find(w); in {
		held.Place = at + 1
	}
	return lease.Outcome{Err: held}
}

// finish ends the wait of p.
func (ls *lines) finish(p *poll) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case p.answered:
	case p.inFlight == 0:
		ls.answer(p, ls.stillHeld(p.waiter))
	default:
		p.over = true
	}
}

// leave ends p because its call ends, and returns what to tell it. Unless another poll
// has taken its place, it leaves the line.
func (ls *lines) leave(p *poll, cause error) lease.Outcome {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if p.answered {
		return p.outcome
	}
	err := lease.ErrOutcomeUnknown
	if ls.withdrawn(p) {
		err = lease.ErrUnavailable
	}
	latest := p.waiter.poll == p
	ls.answer(p, lease.Outcome{Err: fmt.Errorf("%w: %w", err, cause)})
	if latest {
		ls.remove(p.waiter)
	}
	ls.tidy(p.waiter)
	return p.outcome
}

// remove takes w out of the line.
func (ls *lines) remove(w *waiter) {
	if !w.inLine {
		return
	}
	w.inLine = false
	delete(ls.away, w)
	if at, in := w.line.find(w); in {
		w.line.order = slices.Delete(w.line.order, at, at+1)
	}
	ls.schedule(w.line)
}

// tidy forgets w if nothing of it is left, and gives back a grant that nobody knows of.
func (ls *lines) tidy(w *waiter) {
	l := w.line
	if l == nil || w.inLine || w.polls > 0 || w.inFlight > 0 || l.known[w.name] != w {
		return
	}
	delete(l.known, w.name)
	ls.count.Add(-1)
	if w.grant != nil && !w.told && !w.claimed {
		m := lease.Mutation{Op: lease.OpRelease, Key: w.grant.Key, Owner: w.grant.Owner, Epoch: w.grant.Epoch}
		c := newCall(ls.life, [][]byte{fsm.EncodeMutation(m)})
		c.items[0].mutation = &m
		_ = ls.queue.add(c) // if the queue is full, the lease ends by itself
	}
	if len(l.known) == 0 {
		delete(ls.keys, l.key)
		l.due = noInstant
		ls.dues.fix(l)
	}
}

// dueLines is a heap of lines by when the first in line is to be tried.
type dueLines []*line

func (d dueLines) Len() int           { return len(d) }
func (d dueLines) Less(i, j int) bool { return d[i].due < d[j].due }

func (d dueLines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *dueLines) Push(x any) {
	l := x.(*line)
	l.index = len(*d)
	*d = append(*d, l)
}

func (d *dueLines) Pop() any {
	last := len(*d) - 1
	l := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	l.index = -1
	return l
}

// fix puts l where it belongs by its due.
func (d *dueLines) fix(l *line) {
	switch {
	case l.due == noInstant && l.index >= 0:
		heap.Remove(d, l.index)
	case l.due == noInstant:
	case l.index >= 0:
		heap.Fix(d, l.index)
	default:
		heap.Push(d, l)
	}
}
