package fsm

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
	"go.etcd.io/bbolt"
)

// overlay is one write transaction, open over several calls of [FSM.ApplyBatch]: what
// the entries applied so far have changed, over the state file. Records are written
// once, at the end and in key order, however often they change: a transaction's own
// cost is many times that of one record. Invariant: it has whole entries only.
type overlay struct {
	tx      *bbolt.Tx
	stored  *bbolt.Bucket
	indexes [2]*bbolt.Bucket
	items   map[string]*item
	// bytes is how much memory the items keep alive, about: their texts are parts of the
	// entries.
	bytes int
	// unsettled are the items that have changed since the sum was last right.
	unsettled []*item
	meta      meta
	buffer    []byte
	batch
	// damaged says that an entry was carried out by half, or a commit was: nothing may be
	// committed any more.
	damaged bool
}

// batch is what one call of [FSM.ApplyBatch] has done.
type batch struct {
	changed []*item
	digests []Digest
	// happened is for the feed.
	happened []feed.Entry
}

// item is a record that the transaction has read.
type item struct {
	key     string
	current *stored // nil if the key was never granted
	// value is what meta's sum counts of it; nil if nothing. hash is that of value, once
	// it is hashed. A value is not written to once it is made.
	value   []byte
	hash    lanes
	hashed  bool
	changed bool // ever
	listed  bool // is in changed of the batch
	waiting bool // is in unsettled
}

const (
	// maxOverlayItems and maxOverlayBytes are with how much an overlay is committed. Larger
	// ones would save little more, and hold up the entry after them for longer.
	maxOverlayItems = 1024
	maxOverlayBytes = 8 << 20
)

func newOverlay(tx *bbolt.Tx, m meta) *overlay {
	o := &overlay{tx: tx, stored: bucket(tx, recordsBucket), items: map[string]*item{}, meta: m}
	for which := range o.indexes {
		o.indexes[which] = bucket(tx, indexBucket(which))
		// Only its right edge is written.
		o.indexes[which].FillPercent = 0.95
	}
	return o
}

// full reports whether it is time to commit.
func (o *overlay) full() bool { return len(o.items) >= maxOverlayItems || o.bytes >= maxOverlayBytes }

// begin begins a batch.
func (o *overlay) begin() {
	for _, it := range o.changed {
		it.listed = false
	}
	o.batch = batch{changed: o.changed[:0], digests: o.digests[:0]}
}

// record implements records.
func (o *overlay) record(key string) (*stored, error) {
	it, err := o.item(key)
	if err != nil {
		return nil, err
	}
	return it.current, nil
}

func (o *overlay) item(key string) (*item, error) {
	if it, ok := o.items[key]; ok {
		return it, nil
	}
	it := &item{key: key, value: o.stored.Get([]byte(key))}
	if it.value != nil {
		var err error
		if it.current, err = decodeRecord(key, string(it.value)); err != nil {
			return nil, err
		}
	}
	o.bytes += len(key) + 2*len(it.value)
	o.items[key] = it
	return it, nil
}

// next returns the meta with which the entry at index and term is applied.
func (o *overlay) next(index, term uint64) (meta, error) {
	m := o.meta
	if index <= m.index || term < m.term {
		return meta{}, &InvariantError{Problem: fmt.Sprintf("entry %d of term %d would follow entry %d of term %d", index, term, m.index, m.term)}
	}
	m.index, m.term = index, term
	return m, nil
}

// apply applies one log entry and returns its response. After an error the overlay
// is as before, unless it is damaged.
func (o *overlay) apply(log *raft.Log) (any, error) {
	m, err := o.next(log.Index, log.Term)
	if err != nil {
		return nil, err
	}
	if log.Type != raft.LogCommand {
		o.meta = m
		o.mark()
		o.happened = append(o.happened, feed.Entry{Index: m.index, Now: m.now})
		return nil, nil
	}
	e, err := decodeEntry(log.Data)
	if err != nil {
		return nil, err
	}
	done, err := applyEntry(o, m, e)
	if err != nil {
		return nil, err
	}
	if err := o.carryOut(done, len(log.Data)); err != nil {
		o.damaged = true
		return nil, err
	}
	o.mark()
	return done.response, nil
}

// carryOut adds the effects of one entry of so many bytes. An error is one of the state
// file.
func (o *overlay) carryOut(e effects, size int) error {
	o.meta = e.meta
	o.bytes += size
	entry := told(e, size)
	var references [2][]reference
	for i, c := range e.changes {
		it, err := o.item(c.after.record.Key)
		if err != nil {
			return err
		}
		change := &entry.Changes[i]
		if change.Op, change.After = c.op, c.after.record; c.before != nil {
			change.Before = c.before.record
		}
		// The texts of both are parts of the entry and of the value before it.
		entry.Bytes += len(it.value)
		it.current, it.changed = c.after, true
		if !it.listed {
			it.listed = true
			o.changed = append(o.changed, it)
		}
		if !it.waiting {
			it.waiting = true
			o.unsettled = append(o.unsettled, it)
		}
		which := lifecycle
		if c.op == lease.OpRenew {
			which = renewals
		}
		references[which] = append(references[which], reference{ordinal: c.position.Ordinal, key: it.key})
	}
	for which, refs := range references {
		if err := o.refer(which, refs); err != nil {
			return err
		}
	}
	o.happened = append(o.happened, entry)
	return nil
}

// told returns e as the feed takes it, without its changes.
func told(e effects, size int) feed.Entry {
	entry := feed.Entry{Index: e.meta.index, Now: e.meta.now, Bytes: size + len(e.changes)*int(unsafe.Sizeof(feed.Change{}))}
	if len(e.changes) > 0 {
		entry.Changes = make([]feed.Change, len(e.changes))
	}
	return entry
}

// refer adds references to an index, and takes the oldest log entries off its left
// edge until no more references than allowed are left, or one entry.
func (o *overlay) refer(which int, references []reference) error {
	if len(references) == 0 {
		return nil
	}
	index, n := o.indexes[which], &o.meta.references[which]
	if err := index.Put(indexKey(o.meta.index), appendReferences(nil, references)); err != nil {
		return fmt.Errorf("writing the operations of log index %d: %w", o.meta.index, err)
	}
	*n += uint64(len(references))
	for *n > o.meta.settings.HistoryOperations && *n > uint64(len(references)) {
		key, value := index.Cursor().First()
		r := &reader{in: string(value[:min(len(value), 10)])}
		if *n -= min(*n, r.uvarint()); r.bad != nil {
			return corruptIndex(key, r.bad)
		}
		if err := index.Delete(slices.Clone(key)); err != nil {
			return fmt.Errorf("trimming the operations of log index %x: %w", key, err)
		}
	}
	return nil
}

// mark keeps the digest after an entry. It is called after each one: what is kept
// must not depend on how entries are batched.
func (o *overlay) mark() {
	o.settle()
	o.digests = append(o.digests, o.meta.digest())
}

// settle makes the sum that of the current records.
func (o *overlay) settle() {
	for _, it := range o.unsettled {
		if it.value != nil {
			if !it.hashed {
				it.hash, o.buffer = recordHash(o.buffer, it.key, it.value)
			}
			o.meta.sum.subtract(it.hash)
		}
		o.bytes -= len(it.value)
		it.value = appendRecord(make([]byte, 0, len(it.value)+64), it.current)
		o.bytes += len(it.value)
		it.hash, o.buffer = recordHash(o.buffer, it.key, it.value)
		it.hashed, it.waiting = true, false
		o.meta.sum.add(it.hash)
	}
	o.unsettled = o.unsettled[:0]
}

// commit writes everything and ends the transaction.
func (o *overlay) commit() error {
	changed := make([]*item, 0, len(o.items))
	for _, it := range o.items {
		if it.changed {
			changed = append(changed, it)
		}
	}
	slices.SortFunc(changed, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	for _, it := range changed {
		if err := o.stored.Put([]byte(it.key), it.value); err != nil {
			return fmt.Errorf("writing the record of %q: %w", it.key, err)
		}
	}
	if err := putMeta(o.tx, o.meta); err != nil {
		return err
	}
	if err := o.tx.Commit(); err != nil {
		return fmt.Errorf("committing up to log index %d: %w", o.meta.index, err)
	}
	return nil
}

// abandon ends the transaction with nothing done. After commit it does nothing.
func (o *overlay) abandon() {
	_ = o.tx.Rollback() // fails only if it was ended before
}
