package fsm

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// Restore replaces the state by the snapshot and closes it. The new state is built
// in a file of its own and put in use only when all of it has been read and
// checked; readers that began before go on seeing the old one. On any error the
// state in use is as it was. A damaged snapshot is a [*CorruptSnapshotError], one
// of a newer format an [*UnknownSnapshotError].
func (f *FSM) Restore(source io.ReadCloser) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	err := f.restore(source)
	return errors.Join(err, source.Close())
}

func (f *FSM) restore(source io.Reader) error {
	if err := f.failure(); err != nil {
		return err
	}
	s, err := f.use()
	if err != nil {
		return err
	}
	f.leave(s)
	next, err := f.createStore()
	if err != nil {
		return fmt.Errorf("restoring a snapshot: %w", err)
	}
	m, err := load(next.db, source)
	if err != nil {
		f.leave(next)
		return fmt.Errorf("restoring a snapshot: %w", err)
	}
	var old *store
	f.recent.replaced(m, func() { old = f.swap(next) })
	if err := f.letGo(old); err != nil {
		f.logger.Warn("an old state file is left behind", "error", err)
	}
	f.feed.Reset()
	f.logger.Info("restored a snapshot", "index", m.index, "term", m.term, "keys", m.keys)
	return nil
}

// load fills the empty db from a snapshot.
func load(db *bbolt.DB, source io.Reader) (meta, error) {
	b := &builder{db: db}
	defer b.abandon()
	m, err := readSnapshot(source, b)
	if err != nil {
		return meta{}, err
	}
	if err := b.begin(); err != nil {
		return meta{}, err
	}
	if err := putMeta(b.tx, m); err != nil {
		return meta{}, err
	}
	return m, b.commit()
}

// builder fills a state file in key order, in transactions of bounded size, so
// that memory stays flat.
type builder struct {
	db    *bbolt.DB
	tx    *bbolt.Tx // nil between transactions
	bytes int       // in this transaction
}

const bytesPerTransaction = 4 << 20

func (b *builder) begin() error {
	if b.tx != nil {
		return nil
	}
	tx, err := b.db.Begin(true)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	b.tx, b.bytes = tx, 0
	return nil
}

func (b *builder) commit() error {
	tx := b.tx
	b.tx = nil
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing a part of the state: %w", err)
	}
	return nil
}

func (b *builder) abandon() {
	if b.tx != nil {
		_ = b.tx.Rollback() // the file is about to be deleted
	}
}

// put implements loader.
func (b *builder) put(kind byte, key, value []byte) error {
	if err := b.begin(); err != nil {
		return err
	}
	name := recordsBucket
	switch kind {
	case frameLifecycle:
		name = indexBucket(lifecycle)
	case frameRenewals:
		name = indexBucket(renewals)
	}
	to := bucket(b.tx, name)
	to.FillPercent = 0.9
	if err := to.Put(key, slices.Clone(value)); err != nil {
		return fmt.Errorf("writing a part of the state: %w", err)
	}
	if b.bytes += len(key) + len(value); b.bytes >= bytesPerTransaction {
		return b.commit()
	}
	return nil
}
