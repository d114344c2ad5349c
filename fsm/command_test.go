package fsm_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

var someStamp = fsm.Stamp{Reading: 1_772_366_400_123_456_789, Term: 7, Wall: began}

// entries are one of each kind of log entry, by the name of their golden file.
func entries() map[string][]byte {
	full := acquire("orgs/a", "host-1/é", "request-1", 10*time.Second)
	full.Attributes = map[string]string{"version": "1.2", "addr": "10.0.0.1:80", "empty": ""}
	return map[string][]byte{
		"entry-opening": fsm.EncodeOpening(fsm.Opening{Wall: began, Settings: fsm.DefaultSettings()}),
		"entry-tick":    batch(someStamp),
		"entry-acquire": batch(someStamp, full),
		"entry-renew":   batch(someStamp, renew("k", "x", 300, time.Minute)),
		"entry-release": batch(someStamp, release("k", "x", math.MaxUint64)),
		"entry-forget":  batch(someStamp, forget("k", "x", 1)),
		"entry-batch":   batch(someStamp, acquire("k", "x", "", lease.MinTTL), release("k", "x", 1), acquire("k", "x", "r", -1)),
	}
}

func TestEntriesAreWrittenAsTheyAlwaysWere(t *testing.T) {
	for name, data := range entries() {
		golden(t, name, data)
		again, err := fsm.Reencode(data)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: decoded and encoded again it is %x, %v; want %x", name, again, err, data)
		}
	}
}

func TestEntriesDecodeToWhatWasEncoded(t *testing.T) {
	opening := fsm.Opening{Wall: began, Settings: fsm.Settings{MaxKeys: 1, HistoryGrants: 2, HistoryRenewals: 3, HistoryOperations: 4}}
	if got, err := fsm.DecodeOpening(fsm.EncodeOpening(opening)); err != nil || got != opening {
		t.Errorf("got %v, %v; want %v", got, err, opening)
	}
	full := acquire("k", "x", "r", time.Hour)
	full.Attributes = map[string]string{"b": "1", "a": "2"}
	mutations := []lease.Mutation{full, renew("", "", 0, math.MinInt64), release("\xff", strings.Repeat("o", 5000), math.MaxUint64), forget("k", "x", 1)}
	stamp, got, err := fsm.DecodeBatch(batch(someStamp, mutations...))
	if err != nil || stamp != someStamp || !reflect.DeepEqual(got, mutations) {
		t.Errorf("got %v, %v, %v; want %v, %v", stamp, got, err, someStamp, mutations)
	}
}

func TestOpeningFillsInDefaultsAndKeepsTheWallTimeInBounds(t *testing.T) {
	latest := time.Unix(0, 1<<62).UTC()
	for wall, want := range map[time.Time]time.Time{
		{}:                             time.Unix(0, 0).UTC(),
		began:                          began,
		latest.Add(time.Second):        latest,
		time.Unix(math.MaxInt32<<9, 0): latest,
	} {
		got, err := fsm.DecodeOpening(fsm.EncodeOpening(fsm.Opening{Wall: wall, Settings: fsm.Settings{MaxKeys: 5}}))
		settings := fsm.DefaultSettings()
		settings.MaxKeys = 5
		if err != nil || !got.Wall.Equal(want) || got.Settings != settings {
			t.Errorf("wall %v: got %v, %v", wall, got, err)
		}
	}
}

func TestEntriesThatAreNotUnderstood(t *testing.T) {
	good := batch(someStamp, renew("k", "x", 1, time.Second))
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	op := bytes.Index(good, fsm.EncodeMutation(renew("k", "x", 1, time.Second)))
	for name, data := range map[string][]byte{
		"version":   changed(0, 2),
		"kind":      changed(1, 3),
		"operation": changed(op, 5),
	} {
		_, err := fsm.Reencode(data)
		var unknown *fsm.UnknownEntryError
		if !errors.As(err, &unknown) || unknown.What != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCorruptEntriesAreRefused(t *testing.T) {
	good := batch(someStamp, acquire("key", "x", "r", time.Second))
	corrupt := map[string][]byte{
		"empty":              {},
		"trailing":           append(bytes.Clone(good), 0),
		"too long":           append([]byte{1, 2, 0, 0, 0, 1}, make([]byte, fsm.MaxEntryBytes+1)...),
		"many mutations":     {1, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"long number":        {1, 2, 0x80, 0, 0, 0, 0},
		"number of 65 bits":  {1, 2, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0},
		"overlong number":    append([]byte{1, 2}, bytes.Repeat([]byte{0xff}, 11)...),
		"reading":            append([]byte{1, 2}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0),
		"wall":               append([]byte{1, 2, 0, 0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0),
		"settings of 0":      {1, 1, 0, 0, 1, 1, 1},
		"attributes reverse": {1, 2, 0, 0, 0, 1, 1, 1, 'k', 1, 'x', 0, 0, 2, 1, 'b', 0, 1, 'a', 0},
		"attributes twice":   {1, 2, 0, 0, 0, 1, 1, 1, 'k', 1, 'x', 0, 0, 2, 1, 'a', 0, 1, 'a', 0},
	}
	for n := range good {
		corrupt["cut at "+string(rune('a'+n))] = good[:n]
	}
	for name, data := range corrupt {
		_, err := fsm.Reencode(data)
		var bad *fsm.CorruptEntryError
		if !errors.As(err, &bad) || bad.Offset > len(data) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEncodingPanicsRatherThanPoisonTheLog(t *testing.T) {
	for name, encode := range map[string]func(){
		"operation": func() { fsm.EncodeMutation(lease.Mutation{Op: 9}) },
		"reading":   func() { batch(fsm.Stamp{Reading: -1}) },
		"length":    func() { fsm.EncodeBatch(someStamp, [][]byte{make([]byte, fsm.MaxEntryBytes+1)}) },
		"settings":  func() { fsm.EncodeOpening(fsm.Opening{Settings: fsm.Settings{HistoryGrants: 1 << 20}}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it encoded what no node would decode")
				}
			}()
			encode()
		})
	}
}

func TestAFullEntryFits(t *testing.T) {
	body := fsm.EncodeMutation(release("key", "x", 1))
	bodies := make([][]byte, fsm.MaxEntryBytes/len(body))
	for i := range bodies {
		bodies[i] = body
	}
	if len(body)*len(bodies) != fsm.MaxEntryBytes {
		t.Fatalf("bodies of %d bytes do not fill an entry", len(body))
	}
	stamp := fsm.Stamp{Reading: math.MaxInt64 - lease.Instant(lease.MaxTTL), Term: math.MaxUint64, Wall: time.Unix(1<<40, 0)}
	if _, err := fsm.Reencode(fsm.EncodeBatch(stamp, bodies)); err != nil {
		t.Error(err)
	}
}

func FuzzEntry(f *testing.F) {
	for _, data := range entries() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		again, err := fsm.Reencode(data)
		var unknown *fsm.UnknownEntryError
		var corrupt *fsm.CorruptEntryError
		switch {
		case err == nil && !bytes.Equal(again, data):
			t.Errorf("%x was accepted, and is %x when encoded again", data, again)
		case err != nil && !errors.As(err, &unknown) && !errors.As(err, &corrupt):
			t.Errorf("untyped: %v", err)
		}
	})
}
