package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/hashicorp/raft"
)

// The format of an entry, numbers big-endian:
//
//	previous  4  checksum of the entry before; 0 for the first of a log
//	checksum  4  CRC-32C of the index as 8 bytes, previous, and what follows
//	term      8
//	type      1
//	appended  8  Unix nanoseconds; the least number for no time
//	length    4  of data
//	data, and then extensions to the end

const (
	entrySummed = 8 // what follows the checksum begins here
	entryHeader = 29
	noTime      = math.MinInt64
)

// castagnoli is a polynomial that processors know.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// encodeEntry returns log as it is stored after an entry with the checksum previous.
func encodeEntry(log *raft.Log, previous uint32) ([]byte, error) {
	if len(log.Data) > math.MaxUint32 {
		return nil, fmt.Errorf("entry %d has %d bytes", log.Index, len(log.Data))
	}
	v := make([]byte, entryHeader, entryHeader+len(log.Data)+len(log.Extensions))
	binary.BigEndian.PutUint32(v, previous)
	binary.BigEndian.PutUint64(v[8:], log.Term)
	v[16] = byte(log.Type)
	appended := int64(noTime)
	if !log.AppendedAt.IsZero() {
		appended = log.AppendedAt.UnixNano()
	}
	binary.BigEndian.PutUint64(v[17:], uint64(appended))
	binary.BigEndian.PutUint32(v[25:], uint32(len(log.Data)))
	v = append(append(v, log.Data...), log.Extensions...)
	binary.BigEndian.PutUint32(v[4:], sumEntry(log.Index, v))
	return v, nil
}

func sumEntry(index uint64, v []byte) uint32 {
	var head [12]byte
	binary.BigEndian.PutUint64(head[:], index)
	copy(head[8:], v[:4])
	return crc32.Update(crc32.Checksum(head[:], castagnoli()), castagnoli(), v[entrySummed:])
}

func entryPrevious(v []byte) uint32 { return binary.BigEndian.Uint32(v) }
func entrySum(v []byte) uint32      { return binary.BigEndian.Uint32(v[4:]) }

// verifyEntry returns an error if v is not what was stored at index.
func verifyEntry(index uint64, v []byte) error {
	if len(v) < entryHeader {
		return fmt.Errorf("it has %d bytes, an entry has %d or more", len(v), entryHeader)
	}
	if sumEntry(index, v) != entrySum(v) {
		return errors.New("its checksum is another")
	}
	if uint64(binary.BigEndian.Uint32(v[25:])) > uint64(len(v)-entryHeader) {
		return errors.New("its length is another")
	}
	return nil
}

// decodeEntry puts the verified entry v into log, which keeps parts of v.
func decodeEntry(index uint64, v []byte, log *raft.Log) {
	*log = raft.Log{Index: index, Term: binary.BigEndian.Uint64(v[8:]), Type: raft.LogType(v[16])}
	if appended := int64(binary.BigEndian.Uint64(v[17:])); appended != noTime {
		log.AppendedAt = time.Unix(0, appended)
	}
	end := entryHeader + int(binary.BigEndian.Uint32(v[25:]))
	if end > entryHeader {
		log.Data = v[entryHeader:end:end]
	}
	if end < len(v) {
		log.Extensions = v[end:]
	}
}
