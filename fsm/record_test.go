package fsm_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// eventful returns a machine with a key that has seen everything.
func eventful(t testing.TB) *machine {
	m := openMachine(t, fsm.Settings{})
	full := acquire("k", "x", "r1", time.Second)
	full.Attributes = map[string]string{"version": "2", "addr": "h:1"}
	m.do(full, forget("k", "x", 1), renew("k", "x", 1, 2*time.Second))
	m.since = time.Minute
	m.do(acquire("k", "y", "", time.Second), acquire("j", "x", "r2", time.Hour), release("k", "y", 2))
	full.RequestID = "r3"
	m.do(full)
	m.since += time.Millisecond
	m.do(renew("k", "x", 3, time.Second), renew("j", "x", 1, 2*time.Hour))
	return m
}

func TestRecordsAreWrittenAsTheyAlwaysWere(t *testing.T) {
	m := eventful(t)
	value, err := m.StoredValue("k")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "record", value)
	again, err := fsm.ReencodeRecord("k", string(value))
	if err != nil || !bytes.Equal(again, value) {
		t.Errorf("decoded and encoded again it is %x, %v; want %x", again, err, value)
	}
}

func TestCorruptRecordsAreRefused(t *testing.T) {
	m := eventful(t)
	value, err := m.StoredValue("k")
	if err != nil {
		t.Fatal(err)
	}
	// Epoch 2, with one grant that is told to be the first of two, or of one.
	other := []byte{1, 2, 0, 0, 1, 'x', 0, 0, 2, 1, 1, 1, 0, 0, 0, 1, 'x', 0}
	broken := [][]byte{append(bytes.Clone(value), 0), other}
	other[8] = 1
	if _, err := fsm.ReencodeRecord("k", string(other[:15])); err != nil {
		t.Fatal(err)
	}
	other[8] = 2
	for n := range value {
		broken = append(broken, value[:n])
	}
	for _, b := range broken {
		_, err := fsm.ReencodeRecord("k", string(b))
		var corrupt *fsm.CorruptStateError
		if !errors.As(err, &corrupt) {
			t.Errorf("%x: got %v", b, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	m := eventful(f)
	for _, key := range []string{"k", "j"} {
		value, err := m.StoredValue(key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		again, err := fsm.ReencodeRecord("k", string(value))
		var corrupt *fsm.CorruptStateError
		switch {
		case err == nil && !bytes.Equal(again, value):
			t.Errorf("%x was accepted, and is %x when encoded again", value, again)
		case err != nil && !errors.As(err, &corrupt):
			t.Errorf("untyped: %v", err)
		}
	})
}

func TestGuardRefusesWhatNothingMayDo(t *testing.T) {
	before := lease.Record{Key: "k", Owner: "x", Epoch: 5, LeaseUntil: 100, ForgottenAtEpoch: 3}
	with := func(change func(*lease.Record)) lease.Record {
		after := before
		change(&after)
		return after
	}
	for name, c := range map[string]struct {
		before, after lease.Record
		op            lease.Op
		refused       bool
	}{
		"nothing":             {before: before, after: before, op: lease.OpRenew},
		"epoch + 1":           {before: before, after: with(func(r *lease.Record) { r.Epoch++; r.Owner = "y" }), op: lease.OpAcquire},
		"epoch + 2":           {before: before, after: with(func(r *lease.Record) { r.Epoch += 2 }), op: lease.OpAcquire, refused: true},
		"epoch - 1":           {before: before, after: with(func(r *lease.Record) { r.Epoch-- }), op: lease.OpAcquire, refused: true},
		"first epoch":         {after: lease.Record{Key: "k", Owner: "x", Epoch: 1}, op: lease.OpAcquire},
		"first epoch 0":       {after: lease.Record{Key: "k", Owner: "x"}, op: lease.OpAcquire, refused: true},
		"first epoch 2":       {after: lease.Record{Key: "k", Owner: "x", Epoch: 2}, op: lease.OpAcquire, refused: true},
		"floor up":            {before: before, after: with(func(r *lease.Record) { r.ForgottenAtEpoch = 5 }), op: lease.OpForget},
		"floor back":          {before: before, after: with(func(r *lease.Record) { r.ForgottenAtEpoch-- }), op: lease.OpForget, refused: true},
		"floor above epoch":   {before: before, after: with(func(r *lease.Record) { r.ForgottenAtEpoch = 6 }), op: lease.OpForget, refused: true},
		"removal":             {before: before, op: lease.OpRelease, refused: true},
		"another key":         {before: before, after: with(func(r *lease.Record) { r.Key = "j" }), op: lease.OpRenew, refused: true},
		"owner within epoch":  {before: before, after: with(func(r *lease.Record) { r.Owner = "y" }), op: lease.OpRenew, refused: true},
		"end back by release": {before: before, after: with(func(r *lease.Record) { r.LeaseUntil-- }), op: lease.OpRelease},
		"end back by renew":   {before: before, after: with(func(r *lease.Record) { r.LeaseUntil-- }), op: lease.OpRenew, refused: true},
		"end back by acquire": {before: before, after: with(func(r *lease.Record) { r.Epoch++; r.LeaseUntil-- }), op: lease.OpAcquire, refused: true},
	} {
		err := fsm.WriteOver(c.before, c.after, c.op)
		var broken *fsm.InvariantError
		if errors.As(err, &broken) != c.refused {
			t.Errorf("%s: got %v, want it refused: %v", name, err, c.refused)
		}
	}
}
