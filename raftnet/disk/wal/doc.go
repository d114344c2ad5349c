// Package wal is a log of records on files that are only appended to: one pwrite and
// one fdatasync a record. What is in a record is its user's business.
//
// # The files
//
// Segments, 00000001.seg and so on, have their full size and are zero from the
// beginning: written out, fsynced and renamed into place before they are used, ahead of
// need where possible. So appending neither allocates nor changes metadata, and the one
// fdatasync has no journal to wait for. A position in a segment is written once; old
// segments are removed, never used again: stale bytes would look like records.
//
// A segment is blocks of 512 bytes. The first one says what the segment is. A record is
// one or more whole blocks within one segment. Each block has a checksum over its
// content, the log's id, the segment and the place in it, and says of which record it is
// which part; each record has a checksum chained to the record before, and the next
// number. So a block is valid where it is, or zero and was never written, or damaged.
//
// The file mark says up to which record the log has surely come. It is one sector,
// written behind the records, at most 200 ms, and when the log is closed.
//
// # What is promised
//
// When [Log.Append] returns nil the record is durable, whole. Opening reads and verifies
// every block of every segment; anything but the following is a [*DamageError].
//
// A crash, of the process or of the machine, leaves any part of the blocks of the record
// that was being written, and that record only. A record at the very end that lacks blocks
// is therefore taken as never written, if nothing comes after it and the mark has not seen
// it, and its place is zeroed before it is used again. A sector is assumed to be written
// as a whole or not at all.
//
// # What is not promised
//
// A disk that loses, as a whole and consistently, the newest records that it has
// acknowledged, as if they had never been written, is noticed only as far as the mark has
// come to the disk: after a clean stop always; after a crash not for what was written
// within the last 200 ms or so. Losing anything before the end is always noticed.
//
// Where a file system copies what is written over, or compresses zeros away, a segment
// holds no room on the disk: then a write into it can fail for lack of space.
//
// Only package disk imports this package. Begin reading at [Open].
package wal
