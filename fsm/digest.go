package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Digest is a digest of the whole state as it is after the log entry at Index. Two
// nodes that differ in Sum at one Index have different states.
type Digest struct {
	Index uint64
	Sum   [32]byte
}

const (
	// digestInterval is how far apart the indexes are at which every node keeps a
	// digest, so that nodes that applied in different batches have some in common.
	digestInterval = 64
	// digestsLatest is of how many of the latest entries the digest is kept.
	digestsLatest = 16
	// digestsKept is how many digests are kept in all.
	digestsKept = 64
)

// lanes is a sum of hashes, word by word, wrapping. Records join and leave it in
// any order, which is what makes the digest incremental and independent of it.
type lanes [4]uint64

func (l *lanes) add(m lanes) {
	for i := range l {
		l[i] += m[i]
	}
}

func (l *lanes) subtract(m lanes) {
	for i := range l {
		l[i] -= m[i]
	}
}

// recordHash returns SHA-256 over the key's length as a uvarint, the key, and the
// record's value. It uses buffer's memory, which may be nil, and returns it for
// the next call.
func recordHash(buffer []byte, key string, value []byte) (lanes, []byte) {
	buffer = append(appendText(buffer[:0], key), value...)
	sum := sha256.Sum256(buffer)
	var l lanes
	for i := range l {
		l[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	return l, buffer
}

// digest returns the digest of the state that m belongs to. The term and the
// index of operations are not in it: the first is the log's, the second follows
// from the records.
func (m meta) digest() Digest {
	b := make([]byte, 0, 128)
	b = append(b, "leasenode state 1\n"...)
	words := []uint64{
		m.index, uint64(m.now), uint64(m.latestEnd), m.keys,
		m.settings.MaxKeys, m.settings.HistoryGrants, m.settings.HistoryRenewals, m.settings.HistoryOperations,
	}
	for _, word := range append(words, m.sum[:]...) {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return Digest{Index: m.index, Sum: sha256.Sum256(b)}
}

// marks are the digests that are kept, ascending: of the latest entries, so that
// nodes that are a little apart have some in common, and of those at multiples of
// digestInterval.
type marks []Digest

// add adds d, in place, and takes out what is not kept any more.
func (m *marks) add(d Digest) {
	if n := len(*m) - digestsLatest; n >= 0 && (*m)[n].Index%digestInterval != 0 {
		*m = slices.Delete(*m, n, n+1)
	}
	*m = append(*m, d)
	if len(*m) > digestsKept {
		*m = slices.Delete(*m, 0, len(*m)-digestsKept)
	}
}
