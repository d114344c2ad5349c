package main

import "time"

// watch is the rules by which a guard ends COMMAND, without the doing. It knows how
// long the lease is held from answers that it asks for, and counts them from when it
// asked: an answer that comes late, or never, has COMMAND stopped early, never late.
//
// Times are readings of the guard's clock.
type watch struct {
	grace time.Duration // from the deadline to the kill

	asked  time.Duration // when the newest question was
	asking bool          // it is not answered
	known  bool          // one was
	// deadline is until when the lease is held, as far as is known. Invariant: it is never
	// later than when an answered question was asked, and what the answer said.
	deadline time.Duration

	started bool // COMMAND is
	fenced  bool // it is to stop
	told    bool // and was told
	killing bool // whatever there is, is to be killed
	ended   bool // COMMAND has, by itself
	rest    time.Duration
}

// action is what a guard has to do next.
type action int

const (
	doNothing action = iota
	doAsk
	doStart
	doFence
	doKill
)

const (
	mostPause  = 250 * time.Millisecond // between two looks, and between two questions
	leastPause = 2 * time.Millisecond
	killPause  = 5 * time.Millisecond // between two kills: what was killed may leave orphans
)

// look returns what is due at now, and how long to wait until the next look.
func (w *watch) look(now time.Duration) (do action, pause time.Duration) {
	if w.known && now >= w.deadline {
		w.fenced = true
	}
	if w.known && now >= w.killAt() || w.fenced && !w.started {
		w.killing = true
	}
	switch {
	case w.killing:
		return doKill, killPause
	case w.fenced && !w.told:
		w.told = true
		do = doFence
	case w.fenced:
	case w.known && !w.started:
		w.started = true
		do = doStart
	case !w.asking && now >= w.next():
		w.asked, w.asking = now, true
		do = doAsk
	}
	return do, w.pause(now)
}

// killAt is when everything is killed, if there is an answer at all.
func (w *watch) killAt() time.Duration {
	at := w.deadline + w.grace
	if w.ended {
		at = min(at, w.rest)
	}
	return at
}

// next is when to ask again: the sooner, the nearer the deadline is.
func (w *watch) next() time.Duration {
	return w.asked + min(mostPause, max(leastPause, (w.deadline-w.asked)/4))
}

// pause returns the time until something may be due. It is short, since timers stand
// still while the machine sleeps, and the clock does not.
func (w *watch) pause(now time.Duration) time.Duration {
	until := now + mostPause
	if w.known {
		until = min(until, w.killAt())
	}
	if w.known && !w.fenced {
		until = min(until, w.deadline)
	}
	if !w.asking && !w.fenced {
		until = min(until, w.next())
	}
	return max(0, until-now)
}

// answered takes in that the lease was held for another left at some moment after the
// question; 0 if it was not held.
func (w *watch) answered(left time.Duration) {
	if !w.asking || w.fenced {
		return
	}
	w.asking = false
	if left <= 0 {
		w.fenced = true
		return
	}
	w.deadline, w.known = max(w.deadline, w.asked+left), true
}

// fence has COMMAND told to stop, whatever the clock says.
func (w *watch) fence() { w.fenced = true }

// kill has everything killed, whatever the clock says.
func (w *watch) kill() { w.killing = true }

// over takes in that COMMAND has ended by itself at now: what it left behind has the
// grace to do so too.
func (w *watch) over(now time.Duration) {
	if !w.ended {
		w.ended, w.rest = true, now+w.grace
	}
}
