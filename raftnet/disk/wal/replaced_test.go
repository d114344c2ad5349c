package wal_test

import (
	"bytes"
	"testing"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// What was cut off after a crash and replaced is whole in itself, if the disk has kept it.
func TestARecordThatWasReplacedIsDamage(t *testing.T) {
	disk := newMemory()
	l, w := create(t, disk)
	w, _ = w.add(t, l, 100)
	before := disk.copied()
	cut := append(w[:len(w):len(w)], []byte("a record that is cut off"), bytes.Repeat([]byte("cut off"), 150))
	for _, p := range cut[len(w):] {
		_, err := l.Append(p)
		must(t, err)
	}
	replaced := contents(disk)
	must(t, l.Close())
	l, err := w.open(before)
	must(t, err)
	o, unmarked := &original{}, &original{}
	mark := contents(before)["mark"]
	o.written = append(w[:len(w):len(w)], []byte("a record that replaces it"), bytes.Repeat([]byte("replaced"), 140), []byte("the end"))
	for _, p := range o.written[len(w):] {
		unmarked.files = contents(before)
		_, err := l.Append(p)
		must(t, err)
	}
	must(t, l.Close())
	o.files = contents(before)
	unmarked.files["mark"] = mark
	whole := o.changed(segment(1), func(b []byte) []byte { return b })
	if f, err := o.look(whole); err != nil || f.view.Damage != nil {
		t.Fatalf("%v, %v", f.view.Damage, err)
	}
	for at := 3 * sector; at < 7*sector; at += sector {
		for _, blocks := range []int{1, 2, 3} {
			if at+blocks*sector > 7*sector || at < 4*sector && blocks > 1 {
				continue
			}
			end := at + blocks*sector
			tried := []*original{o}
			if at == 5*sector && blocks == 1 { // within the last record, and nothing has seen that
				tried = append(tried, unmarked)
			}
			for _, o := range tried {
				m := o.changed(segment(1), func(b []byte) []byte { copy(b[at:end], replaced[segment(1)][at:]); return b })
				view, err := wal.Look(m, func(wal.Record) error { return nil })
				must(t, err)
				if view.Damage == nil {
					t.Errorf("blocks %d to %d of what was cut off are taken", at/sector, end/sector)
				}
			}
		}
	}
}

// A lost record at the end of one segment is not made good by an unfinished one at the
// beginning of the next.
func TestALostRecordBeforeAnUnfinishedOneIsDamage(t *testing.T) {
	disk := newMemory()
	l, w := create(t, disk)
	mark := contents(disk)["mark"]
	var at wal.Position
	for at.Segment < 2 {
		w, at = w.add(t, l, 1200)
	}
	must(t, l.Close())
	o := &original{written: w, files: contents(disk)}
	o.files["mark"] = mark
	const blocks = 3
	o.mustRefuse(t, o.with(func(files map[string][]byte) {
		end := (len(bytes.TrimRight(files[segment(1)], "\x00")) + sector - 1) / sector * sector
		clear(files[segment(1)][end-blocks*sector : end])
		clear(files[segment(2)][2*sector : 3*sector])
	}), "the last record of a segment is lost, and the first of the next is unfinished")
}
