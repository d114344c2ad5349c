// Package disk is what raft keeps on a disk: the log, the vote and the snapshots of
// one node, on a disk that may fail, hang, fill up, or give back other bytes than it
// was given. [Open] puts it together; [Inspect] reads the directory of a stopped
// node and changes nothing.
//
// # What is promised
//
// What was read is exactly what was written, or there is a [*CorruptError] that
// names the file, the place and the way out. After the first write, fsync or read
// that failed nothing is acknowledged any more (see [Config].OnFailure): the kernel
// may call the next fsync a success though pages are lost, and bbolt can show a
// transaction that it has called failed. A vote is one value in one write. A disk
// that hangs ends the process (see [Config].End); one that is full only refuses what
// would grow ([*FullError]), before anything is touched.
//
// The log and the vote are kept in one of two ways, see [Config].Log, with the same
// promises but for one: see the last section. A log of the other kind is converted at the
// start; a crash leaves the one or the other.
//
// # The file raft.db
//
// The log and the vote are in one bbolt file, used directly, since what raft-boltdb can
// put into one transaction is too little. A write is two fsyncs. bbolt has no checksums but
// on its two meta pages, so everything else hangs from those:
//
//   - Each transaction also writes the head: the vote and the term, the first and
//     the last index of the log, the checksum of the last entry, the index of the
//     newest snapshot, and the number of the transaction itself. The head is the
//     newest only if that number is the meta page's, so neither a stale page nor a
//     lost tail of the log goes unnoticed.
//   - Each entry has a checksum over itself, its index and the checksum of the entry
//     before it; so the chain from the head's last entry back to the first is whole
//     and of one piece, or the file is refused.
//   - Before bbolt sees the file, every page that is in use is read and its structure
//     verified without bbolt, which answers damage with panics on goroutines of its
//     own, endless recursion and reads outside of its mapping.
//   - Both meta pages have to be valid. bbolt would fall back to the older one, and so
//     to the vote before the last; a crash does not tear what is within one sector.
//
// # The folder wal
//
// The log and the vote are in files that are only appended to, those of package wal. A
// write is one record, one pwrite and one fdatasync: the head, what is deleted and the
// entries.
//
//   - Blocks have checksums over what they are and where, records a chain and consecutive
//     numbers, so everything that is read at the start, which is all, is what was written
//     there, or was never written.
//   - Heads and entries are those of raft.db, with the same chain of checksums.
//   - Segments are made ahead, with their room on the disk. Where none can be made, what
//     grows is refused before anything is touched, and votes have the rest of the current
//     one. Segments that have nothing of the log are removed.
//   - What the system may have left of a record that was being written when it stopped
//     is taken as never written, if it is the last and lacks blocks.
//
// # What is not promised
//
// A disk may lie about fsync, and lose the newest writes that it has acknowledged and
// nothing before them. raft.db notices lost pages of the last transaction, but not that
// its meta page was lost, which leaves the transaction before. wal notices all that was
// lost after a clean stop, and after a crash all but what was written within the last 200
// ms or so: there a lost block is taken for a write that was never finished.
//
// In wal a sector is rewritten, with the same bytes and more behind them in the same page
// of the system, while it has acknowledged writes. A disk that tears that, which one that
// keeps its word about sectors does not, damages them, and that is noticed.
//
// A disk that goes back, as a whole and consistently, to what it was earlier is not
// noticed here: that is what the start counter of a node's identity is for. Damage
// that comes while the file is open is found when an entry is read.
//
// Only package raftnet and programs that put a node together import this package.
package disk
