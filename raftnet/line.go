package raftnet

import (
	"cmp"
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
// Polls of one attempt overlap, and may come in another order than they were sent. The
// newest by its Waited is the one that is tried, since who waits gives up the older ones
// first. One that comes late is kept behind it, unanswered, and is tried when the newer
// one has ended. Both rules hold whatever Waited says, which is a stranger's word: it
// chooses only which of the polls with the leader the next item belongs to, and while a
// poll is kept, or has an item without an outcome, no grant of its attempt is given back.
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
	// polls are those that are neither answered nor replaced, the newest first: each has
	// come after those before it, and waited less.
	polls    []*poll
	inFlight int // how many items of it, queued or packed, have no outcome
	// grant is one that was made for a call that had ended, and that nobody knows of.
	grant   *lease.Record
	won     bool // a grant was made or found
	told    bool // somebody was told of a grant
	claimed bool // an acquire that does not wait has the same name
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
			for _, p := range slices.Clone(w.polls) {
				if ls.withdrawn(p) {
					ls.answer(p, lease.Outcome{Err: err})
				} else {
					p.over = true
				}
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
	if w.newer(lp.Waited) >= maxPolls {
		return nil, &lease.ExhaustedError{Resource: "polls of one attempt", Limit: maxPolls, Key: lp.Mutation.Key}
	}
	p := &poll{
		lines: ls, waiter: w, ctx: ctx, mutation: lp.Mutation, body: fsm.EncodeMutation(lp.Mutation),
		wait: lp.Wait, waited: lp.Waited, done: make(chan struct{}),
	}
	ls.admit(p)
	ls.start(w)
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
	return slices.BinarySearchFunc(l.order, w, (*waiter).compare)
}

func (w *waiter) compare(other *waiter) int {
	return cmp.Or(cmp.Compare(w.since, other.since), cmp.Compare(w.number, other.number))
}

// head returns the newest poll of the first in line that has one with the leader, of
// that owner unless it is empty; nil if there is none. Whoever is between two polls, or
// has gone, is passed over.
func (l *line) head(owner string) *poll {
	for _, w := range l.order {
		if !w.proposed || owner != "" && w.name.owner != owner {
			continue
		}
		if p := w.newest(); p != nil {
			return p
		}
	}
	return nil
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
	if l == nil || w.inLine || len(w.polls) > 0 || w.inFlight > 0 || l.known[w.name] != w {
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
