package fsm

import (
	"encoding/binary"
	"math"

	"github.com/leasenode/leasenode/lease"
)

// The format of the meta value, in the state file and in snapshots:
//
//	meta = version(1) index term opened now latest-end keys settings references references sum
//
// version and opened (0 or 1) are a byte, sum is four big-endian words, and
// everything else is a uvarint. Settings are there only if opened is 1.

const metaVersion = 1

// meta is everything of the state but the records and the index of operations.
type meta struct {
	index, term uint64 // of the last entry applied
	// opened says whether an opening entry was ever applied. Until then there is no
	// clock and no settings.
	opened bool
	// now is the cluster clock. Invariant: it never goes back.
	now lease.Instant
	// latestEnd is the latest lease_until ever set. Invariant: it never goes back.
	latestEnd lease.Instant
	keys      uint64
	settings  Settings
	// references counts what is in the two indexes of operations.
	references [2]uint64
	// sum is over all records.
	sum lanes
}

func appendMeta(b []byte, m meta) []byte {
	b = append(b, metaVersion)
	b = binary.AppendUvarint(b, m.index)
	b = binary.AppendUvarint(b, m.term)
	if m.opened {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(m.now))
	b = binary.AppendUvarint(b, uint64(m.latestEnd))
	b = binary.AppendUvarint(b, m.keys)
	if m.opened {
		b = appendSettings(b, m.settings)
	}
	for _, n := range m.references {
		b = binary.AppendUvarint(b, n)
	}
	for _, word := range m.sum {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return b
}

// decodeMeta is the inverse of appendMeta.
func decodeMeta(value string) (meta, *fault) {
	r := &reader{in: value}
	if version := r.byte(); version != metaVersion {
		r.fail("meta of an unknown version")
	}
	m := meta{index: r.uvarint(), term: r.uvarint()}
	switch r.byte() {
	case 0:
	case 1:
		m.opened = true
	default:
		r.fail("a flag that is neither 0 nor 1")
	}
	m.now = lease.Instant(r.atMost(maxInstant, "the cluster clock"))
	m.latestEnd = lease.Instant(r.atMost(math.MaxInt64, "the latest end"))
	m.keys = r.uvarint()
	if m.opened {
		m.settings = r.settings()
	}
	for i := range m.references {
		m.references[i] = r.uvarint()
	}
	for i := range m.sum {
		m.sum[i] = r.fixed64()
	}
	return m, r.end()
}
