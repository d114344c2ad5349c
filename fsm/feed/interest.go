package feed

import "slices"

// interest tells which watchers an event concerns, without looking at the others: by
// one look-up for the key and one for each length of prefix there is. Only watchers
// that have seen everything are in it; one that is behind comes by itself. Not safe for
// concurrent use.
type interest struct {
	// by has the watchers that do not want renewals, and those that do.
	by [2]selections
	// partial are watchers that wait for more of a long entry: whatever comes next wakes
	// them.
	partial bucket
}

type selections struct {
	keys, prefixes map[string]*bucket
	// lengths are those of the prefixes, ascending, and how many have each.
	lengths []prefixLength
}

type prefixLength struct{ length, buckets int }

// bucket is the watchers of one selection.
type bucket struct {
	watchers int
	waiting  []*Watcher
}

func newInterest() interest {
	i := interest{}
	for class := range i.by {
		i.by[class] = selections{keys: map[string]*bucket{}, prefixes: map[string]*bucket{}}
	}
	return i
}

// of returns the selections that have s, and the texts among them.
func (i *interest) of(s Selection) (*selections, map[string]*bucket, string) {
	by := &i.by[lifecycle]
	if s.Renewals {
		by = &i.by[renewals]
	}
	if s.Key != "" {
		return by, by.keys, s.Key
	}
	return by, by.prefixes, s.Prefix
}

// join returns the bucket for a new watcher of s.
func (i *interest) join(s Selection) *bucket {
	by, texts, text := i.of(s)
	b := texts[text]
	if b == nil {
		b = &bucket{}
		texts[text] = b
		if s.Key == "" {
			by.countPrefix(len(text), 1)
		}
	}
	b.watchers++
	return b
}

// leave is called for each that joined.
func (i *interest) leave(s Selection) {
	by, texts, text := i.of(s)
	b := texts[text]
	if b.watchers--; b.watchers > 0 {
		return
	}
	delete(texts, text)
	if s.Key == "" {
		by.countPrefix(len(text), -1)
	}
}

func (s *selections) countPrefix(length, change int) {
	at, found := slices.BinarySearchFunc(s.lengths, length, func(p prefixLength, length int) int { return p.length - length })
	if !found {
		s.lengths = slices.Insert(s.lengths, at, prefixLength{length: length})
	}
	if s.lengths[at].buckets += change; s.lengths[at].buckets == 0 {
		s.lengths = slices.Delete(s.lengths, at, at+1)
	}
}

// wake has those look who wait for an event of that class and key. It stands after seen.
func (i *interest) wake(class int, key string, seen place) {
	if class == lifecycle {
		i.by[lifecycle].wake(key, seen)
	}
	i.by[renewals].wake(key, seen)
}

func (s *selections) wake(key string, seen place) {
	if b := s.keys[key]; b != nil {
		b.wake(seen)
	}
	for _, p := range s.lengths {
		if p.length > len(key) {
			return
		}
		if b := s.prefixes[key[:p.length]]; b != nil {
			b.wake(seen)
		}
	}
}

func (i *interest) wakePartial() { i.partial.wake(place{}) }

// wakeAll has everybody look. They have seen what is before seen.
func (i *interest) wakeAll(seen place) {
	i.partial.wake(place{})
	for class := range i.by {
		for _, texts := range []map[string]*bucket{i.by[class].keys, i.by[class].prefixes} {
			for _, b := range texts {
				b.wake(seen)
			}
		}
	}
}

func (b *bucket) wake(seen place) {
	for n, w := range b.waiting {
		b.waiting[n] = nil
		w.waitsIn = nil
		if w.place.before(seen) {
			w.place = seen
		}
		select {
		case w.ready <- struct{}{}:
		default:
		}
	}
	b.waiting = b.waiting[:0]
}

// wait has w woken when something comes for the bucket.
func (b *bucket) wait(w *Watcher) {
	w.waitsIn, w.waitsAt = b, len(b.waiting)
	b.waiting = append(b.waiting, w)
}

// forget is the inverse of wait.
func (b *bucket) forget(w *Watcher) {
	last := len(b.waiting) - 1
	b.waiting[w.waitsAt] = b.waiting[last]
	b.waiting[w.waitsAt].waitsAt = w.waitsAt
	b.waiting[last] = nil
	b.waiting = b.waiting[:last]
	w.waitsIn = nil
}
