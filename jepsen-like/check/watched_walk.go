package check

import (
	"fmt"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// standing is what became of the latest lease of a key, as far as was told.
type standing int

const (
	isHeld standing = iota
	ended
	// unclear: a listing in the millisecond of the end, or a broken promise that was told.
	unclear
)

// watchedKey is a key as a watcher was told that it is.
type watchedKey struct {
	record   history.Watched // epoch, owner, end and floor
	standing standing
	how      string // it ended
}

// walk follows the events of a stretch and tells where one cannot have come after those
// before it.
func (s *stretch) walk(f *finding) {
	keys := map[string]*watchedKey{}
	for _, w := range s.listed {
		keys[w.Key] = listedKey(w, s.began)
	}
	for i, w := range s.told {
		if problem := s.order(i); problem != "" {
			f.violation(heard(w, "%s was told %s %s", s.watcher, toldText(w), problem))
			continue
		}
		s.due(keys, w, f)
		k := keys[w.Key]
		if k == nil {
			k = &watchedKey{standing: ended, how: "never granted"}
			keys[w.Key] = k
		}
		if problem := k.take(w, s.renewals); problem != "" {
			f.violation(heard(w, "%s was told %s, but %s", s.watcher, toldText(w), problem))
			k.standing = unclear
		}
		k.become(w)
	}
	s.due(keys, history.Watched{At: s.ended}, f)
}

func listedKey(w history.Watched, now lease.Instant) *watchedKey {
	k := &watchedKey{record: w, how: "over when it was listed"}
	switch { // the wire has whole milliseconds
	case w.LeaseUntil.Millis() == now.Millis():
		k.standing = unclear
	case w.LeaseUntil < now:
		k.standing = ended
	}
	return k
}

// order holds the i-th event against the one before it and against the position that the
// watcher had.
func (s *stretch) order(i int) string {
	w := s.told[i]
	if w.Index <= s.floors[i] {
		return fmt.Sprintf("after it had been told everything up to index %d", s.floors[i])
	}
	if i == 0 {
		return ""
	}
	before := s.told[i-1]
	ends, endsBefore := w.Event == lease.Expired.String(), before.Event == lease.Expired.String()
	switch {
	case w.Index < before.Index, w.At < before.At, w.Index == before.Index && w.At != before.At:
		return "out of order, after " + toldText(before)
	case sameEvent(w, before):
		return "twice"
	case w.Index == before.Index && ends && !endsBefore:
		return "after what the entry itself did, " + toldText(before)
	case w.Index == before.Index && ends && w.LeaseUntil < before.LeaseUntil:
		return "out of the order of ends, after " + toldText(before)
	default:
		return ""
	}
}

// due tells of leases that the event w, or the end of the stretch, comes too late for:
// their end has passed by then, and should have been told before. Whoever is told no
// renewals does not know ends; that is left to [agree].
func (s *stretch) due(keys map[string]*watchedKey, w history.Watched, f *finding) {
	if !s.renewals {
		return
	}
	var late []string
	for key, k := range keys {
		over := k.standing == isHeld && k.record.LeaseUntil.Millis() < w.At.Millis()
		turn := w.Event == lease.Expired.String() && k.record.LeaseUntil >= w.LeaseUntil // is now, or yet to come
		if over && !turn {
			late = append(late, key)
		}
	}
	slices.Sort(late)
	for _, key := range late {
		k := keys[key]
		f.violation(heard(history.Watched{Key: key, When: k.record.When}, "%s was not told by clock %d ms that the lease of epoch %d, until %d ms, has expired",
			s.watcher, w.At.Millis(), k.record.Epoch, k.record.LeaseUntil.Millis()))
		k.standing = unclear
	}
}

// take returns why w cannot be what happened to the key next, or "".
func (k *watchedKey) take(w history.Watched, renewals bool) string {
	kind, known := lease.ParseEventKind(w.Event)
	is := k.record
	switch {
	case !known:
		return "there is no such event"
	case kind == lease.Acquired:
		return k.acquired(w)
	case w.Epoch != is.Epoch || w.Owner != is.Owner:
		return fmt.Sprintf("the latest grant was epoch %d of %q", is.Epoch, is.Owner)
	case kind == lease.Forgotten:
		if w.Floor <= is.Floor {
			return fmt.Sprintf("the floor was %d already", is.Floor)
		}
		return ""
	case w.Floor != is.Floor:
		return fmt.Sprintf("the floor was %d", is.Floor)
	case k.standing == ended:
		return "the lease was " + k.how
	case kind == lease.Renewed && !renewals:
		return "it had not asked for renewals"
	case kind == lease.Renewed && w.LeaseUntil.Millis() < is.LeaseUntil.Millis():
		return fmt.Sprintf("it was held until %d ms", is.LeaseUntil.Millis())
	case kind == lease.Released && w.LeaseUntil.Millis() != w.At.Millis():
		return "that is not when it was released"
	case kind == lease.Expired:
		return k.expired(w, renewals)
	default:
		return ""
	}
}

func (k *watchedKey) acquired(w history.Watched) string {
	switch {
	case w.Epoch != k.record.Epoch+1:
		return fmt.Sprintf("the epoch before was %d", k.record.Epoch)
	case k.standing == isHeld:
		return "it was not told that the lease before has ended"
	case w.Floor != k.record.Floor:
		return fmt.Sprintf("the floor was %d", k.record.Floor)
	default:
		return ""
	}
}

func (k *watchedKey) expired(w history.Watched, renewals bool) string {
	switch {
	case w.At.Millis() < w.LeaseUntil.Millis():
		return "its end was yet to come"
	case w.LeaseUntil < k.record.LeaseUntil, renewals && w.LeaseUntil != k.record.LeaseUntil:
		return fmt.Sprintf("it was held until %d ms", k.record.LeaseUntil.Millis())
	default:
		return ""
	}
}

// become has the key be as w says that it is.
func (k *watchedKey) become(w history.Watched) {
	k.record = w
	switch w.Event {
	case lease.Acquired.String():
		k.standing = isHeld
	case lease.Released.String():
		k.standing, k.how = ended, "released"
	case lease.Expired.String():
		k.standing, k.how = ended, "told to have expired"
	}
}
