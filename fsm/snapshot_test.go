package fsm_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

func TestSnapshotsAreWrittenAsTheyAlwaysWere(t *testing.T) {
	golden(t, "snapshot", eventful(t).snapshot())
}

func TestAnOldSnapshotIsRestored(t *testing.T) {
	data, err := os.ReadFile("testdata/snapshot")
	if err != nil {
		t.Fatal(err)
	}
	m, want := newMachine(t), eventful(t)
	if err := m.restore(data); err != nil {
		t.Fatal(err)
	}
	if m.lastDigest() != want.lastDigest() || m.Keys() != 2 || m.AppliedIndex() != want.AppliedIndex() {
		t.Errorf("index %d, %d keys", m.AppliedIndex(), m.Keys())
	}
	now, end := m.Clock()
	if wantNow, wantEnd := want.Clock(); now != wantNow || end != wantEnd {
		t.Errorf("now %d, latest end %d", now, end)
	}
	if !reflect.DeepEqual(m.history("", 3), want.history("", 1000)) {
		t.Error("the histories differ")
	}
}

// resum gives data, whose content was changed, a checksum that fits.
func resum(data []byte) []byte {
	sum := sha256.Sum256(data[:len(data)-sha256.Size])
	return append(bytes.Clone(data[:len(data)-sha256.Size]), sum[:]...)
}

func TestADamagedSnapshotIsRefusedAndTheStateKept(t *testing.T) {
	good := eventful(t).snapshot()
	m := openMachine(t, fsm.Settings{})
	m.must(acquire("mine", "x", "", time.Second))
	before := m.snapshot()
	refuse := func(name string, data []byte) {
		t.Helper()
		err := m.restore(data)
		var corrupt *fsm.CorruptSnapshotError
		var unknown *fsm.UnknownSnapshotError
		if !errors.As(err, &corrupt) && !errors.As(err, &unknown) {
			t.Errorf("%s: got %v", name, err)
		}
		if corrupt != nil && (corrupt.Offset < 0 || corrupt.Offset > int64(len(data))) {
			t.Errorf("%s: offset %d", name, corrupt.Offset)
		}
	}
	for _, n := range []int{0, 5, 8, 9, 40, len(good) / 2, len(good) - 33, len(good) - 32, len(good) - 1} {
		refuse(fmt.Sprintf("cut at %d", n), good[:n])
	}
	refuse("trailing", append(bytes.Clone(good), 0))
	refuse("twice", append(bytes.Clone(good), good...))
	if !bytes.Equal(m.snapshot(), before) {
		t.Error("the state has changed")
	}
	if len(m.failures) != 0 {
		t.Errorf("it latched: %v", m.failures)
	}
	m.must(acquire("another", "x", "", time.Second))
}

func TestEveryFlippedBitOfASnapshotIsFound(t *testing.T) {
	good := eventful(t).snapshot()
	if err := fsm.CheckSnapshot(bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for bit := range 8 {
			data := bytes.Clone(good)
			data[i] ^= 1 << bit
			if err := fsm.CheckSnapshot(bytes.NewReader(data)); err == nil {
				t.Errorf("bit %d of byte %d", bit, i)
			}
		}
	}
}

// TestRecordsOfASnapshotAreHeldAgainstTheDigest flips bits under a checksum that
// fits, as a program that is wrong would.
func TestRecordsOfASnapshotAreHeldAgainstTheDigest(t *testing.T) {
	good := eventful(t).snapshot()
	at, records := 9, 0
	for _, frame := range frames(t, good) {
		if frame[0] == 2 {
			records++
			for i := range frame {
				for bit := range 8 {
					data := bytes.Clone(good)
					data[at+i] ^= 1 << bit
					if err := fsm.CheckSnapshot(bytes.NewReader(resum(data))); err == nil {
						t.Errorf("bit %d of byte %d", bit, at+i)
					}
				}
			}
		}
		at += len(frame)
	}
	if records != 2 {
		t.Errorf("%d records", records)
	}
}

func TestASnapshotOfANewerVersionIsRefused(t *testing.T) {
	data := eventful(t).snapshot()
	data[8]++
	var unknown *fsm.UnknownSnapshotError
	if err := newMachine(t).restore(resum(data)); !errors.As(err, &unknown) || unknown.Version != 2 {
		t.Errorf("got %v", err)
	}
}

func TestRecordsThatCannotBeAreRefused(t *testing.T) {
	for name, plant := range map[string]struct {
		record    lease.Record
		grantedAt uint64
	}{
		"sound":                    {lease.Record{Key: "k", Owner: "x", Epoch: 7, LeaseUntil: instant(0)}, 1},
		"after the latest end":     {lease.Record{Key: "k", Owner: "x", Epoch: 7, LeaseUntil: instant(1)}, 1},
		"granted after the state":  {lease.Record{Key: "k", Owner: "x", Epoch: 7, LeaseUntil: instant(0)}, 9},
		"an owner outside a limit": {lease.Record{Key: "k", Owner: " ", Epoch: 7, LeaseUntil: instant(0)}, 1},
		"a key outside a limit":    {lease.Record{Key: "k\n", Owner: "x", Epoch: 7, LeaseUntil: instant(0)}, 1},
	} {
		m := openMachine(t, fsm.Settings{})
		m.must(acquire("j", "x", "", lease.MinTTL))
		m.must(release("j", "x", 1))
		plant.record.LeaseUntil = plant.record.LeaseUntil.Add(lease.MinTTL)
		if err := m.Plant(plant.record, plant.grantedAt); err != nil {
			t.Fatal(err)
		}
		var corrupt *fsm.CorruptSnapshotError
		if err := newMachine(t).restore(m.snapshot()); errors.As(err, &corrupt) == (name == "sound") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestADigestIsKnownOfARestoredState(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	for m.index < 64 {
		m.do()
	}
	want := m.lastDigest()
	other := m.restored()
	other.do()
	if got := other.Digests(); len(got) != 2 || got[0] != want {
		t.Errorf("got %v, want %v first", got, want)
	}
}

func TestAReaderThatFailsFailsTheRestore(t *testing.T) {
	broken := errors.New("broken")
	data := eventful(t).snapshot()
	m := newMachine(t)
	err := m.Restore(io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := m.restore(data); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// failingSink fails after some bytes.
type failingSink struct {
	sink
	left int
}

var errSink = errors.New("no space left")

func (s *failingSink) Write(b []byte) (int, error) {
	if s.left -= len(b); s.left < 0 {
		return 0, errSink
	}
	return s.sink.Write(b)
}

func TestASinkThatFailsIsCancelled(t *testing.T) {
	m := eventful(t)
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	to := &failingSink{left: 10}
	if err := s.Persist(to); !errors.Is(err, errSink) || !to.cancelled || to.closed {
		t.Errorf("got %v, cancelled %v, closed %v", err, to.cancelled, to.closed)
	}
}

func TestASnapshotIsOfItsMomentWhateverComesAfter(t *testing.T) {
	m := openMachine(t, fsm.Settings{})
	m.must(acquire("k", "x", "", time.Second))
	want := m.snapshot()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	m.must(acquire("j", "x", "", time.Second))
	if err := m.restore(eventful(t).snapshot()); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	var to sink
	if err := s.Persist(&to); err != nil || !bytes.Equal(to.Bytes(), want) {
		t.Errorf("%d bytes, %v; want %d", to.Len(), err, len(want))
	}
	s.Release()
	s.Release()
}

func FuzzSnapshot(f *testing.F) {
	good := eventful(f).snapshot()
	f.Add(good[:len(good)-sha256.Size])
	empty := newMachine(f).snapshot()
	f.Add(empty[:len(empty)-sha256.Size])
	f.Fuzz(func(t *testing.T, content []byte) {
		// The checksum always fits, so that what is behind it is reached.
		sum := sha256.Sum256(content)
		data := append(bytes.Clone(content), sum[:]...)
		err := fsm.CheckSnapshot(bytes.NewReader(data))
		var unknown *fsm.UnknownSnapshotError
		var corrupt *fsm.CorruptSnapshotError
		if err != nil && !errors.As(err, &unknown) && !errors.As(err, &corrupt) {
			t.Errorf("untyped: %v", err)
		}
		if err != nil {
			return
		}
		m := newMachine(t)
		if err := m.restore(data); err != nil {
			t.Fatalf("it passes, and is not restored: %v", err)
		}
		if !bytes.Equal(m.snapshot(), data) {
			t.Error("what was accepted is written in another way")
		}
	})
}

// frames returns the frames of a snapshot, from its first to its last.
func frames(t *testing.T, snapshot []byte) [][]byte {
	var all [][]byte
	rest := snapshot[9 : len(snapshot)-sha256.Size]
	for len(rest) > 0 {
		n, width := binary.Uvarint(rest[1:])
		end := 1 + width + int(n)
		all = append(all, rest[:end])
		rest = rest[end:]
	}
	if len(all) < 4 {
		t.Fatal("few frames")
	}
	return all
}

func TestFramesOutOfOrderAreRefused(t *testing.T) {
	good := eventful(t).snapshot()
	header := good[:9]
	all := frames(t, good)
	join := func(frames ...[]byte) []byte {
		content := slices.Concat(append([][]byte{header}, frames...)...)
		return resum(append(content, make([]byte, sha256.Size)...))
	}
	if err := fsm.CheckSnapshot(bytes.NewReader(join(all...))); err != nil {
		t.Fatal(err)
	}
	last := len(all) - 1
	if !bytes.Equal(all[last], []byte{5, 3, 2, 3, 2}) {
		t.Fatalf("the end is %x", all[last])
	}
	moreKeys := bytes.Clone(all[0])
	moreKeys[2+4+9+9]++ // after kind, length, four numbers of a byte and two of nine
	for name, data := range map[string][]byte{
		"no meta":                        join(all[1:]...),
		"meta twice":                     join(slices.Insert(slices.Clone(all), 0, all[0])...),
		"records swapped":                join(slices.Concat(all[:1], all[2:3], all[1:2], all[3:])...),
		"a record twice":                 join(slices.Insert(slices.Clone(all), 1, all[1])...),
		"a record less":                  join(slices.Delete(slices.Clone(all), 1, 2)...),
		"an operation less":              join(slices.Delete(slices.Clone(all), 3, 4)...),
		"no end":                         join(all[:last]...),
		"end twice":                      join(append(slices.Clone(all), all[last])...),
		"a frame of kind 6":              join(slices.Insert(slices.Clone(all), last, []byte{6, 0})...),
		"a frame too long":               join(slices.Insert(slices.Clone(all), last, []byte{4, 0xff, 0xff, 0xff, 0x7f})...),
		"another end, an operation less": join(slices.Concat(all[:3], all[4:last], [][]byte{{5, 3, 2, 2, 2}})...),
		"another number of keys":         join(slices.Insert(slices.Clone(all[1:]), 0, moreKeys)...),
		"an empty operation":             join(slices.Insert(slices.Clone(all), last, []byte{4, 0})...),
	} {
		var corrupt *fsm.CorruptSnapshotError
		if err := fsm.CheckSnapshot(bytes.NewReader(data)); !errors.As(err, &corrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
