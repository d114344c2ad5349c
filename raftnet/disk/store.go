package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// LogKind is how a log is kept. The zero value stands for what the directory has, and
// for [LogBolt] if it has none.
type LogKind string

// The kinds of logs.
const (
	// LogBolt is a bbolt file, [LogFile]: two fsyncs a write.
	LogBolt LogKind = "bolt"
	// LogWAL is a folder of files that are only appended to, [WALDir]: one fdatasync a
	// write.
	LogWAL LogKind = "wal"
)

// LogKinds returns all kinds.
func LogKinds() []LogKind { return []LogKind{LogBolt, LogWAL} }

// name is that of the file or the folder in a data directory.
func (k LogKind) name() string {
	if k == LogWAL {
		return WALDir
	}
	return LogFile
}

func (k LogKind) other() LogKind {
	if k == LogWAL {
		return LogBolt
	}
	return LogWAL
}

const (
	// unfinishedLog is the end of the name of a log that is being made.
	unfinishedLog = ".new"
	// replacedLog is the end of the name of a log that was, or is to be, replaced by one
	// of the other kind.
	replacedLog = ".old"
)

// FindLog returns where the log in a data directory is, and of which kind; the error is
// [fs.ErrNotExist] if there is none. It changes nothing.
func FindLog(dir string) (string, LogKind, error) {
	for _, end := range []string{"", replacedLog} {
		var found []LogKind
		for _, kind := range LogKinds() {
			_, err := os.Stat(filepath.Join(dir, kind.name()+end))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", "", fmt.Errorf("look for the log: %w", err)
			}
			if err == nil {
				found = append(found, kind)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return filepath.Join(dir, found[0].name()+end), found[0], nil
		default:
			return "", "", &CorruptError{File: filepath.Join(dir, LogFile), Place: "its directory", Problem: fmt.Sprintf("there is %s too, and a node has one log", WALDir)}
		}
	}
	return "", "", fmt.Errorf("the log in %s: %w", dir, fs.ErrNotExist)
}

// LogFiles returns the paths of the files that the log in a data directory consists of,
// relative to it, in an order in which they can be copied while no entry is written: a file
// that may still be written says less than those that come after it.
func LogFiles(dir string) ([]string, error) {
	path, kind, err := FindLog(dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if kind == LogBolt {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("list the files of the log: %w", err)
	}
	var files []string
	for _, e := range entries {
		file := filepath.Join(name, e.Name())
		if e.Name() == wal.MarkName { // it follows, by itself, what is in the others
			files = slices.Insert(files, 0, file)
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

// opened is a log that was verified and opened.
type opened struct {
	medium Medium
	path   string
	image  *image
	// room makes sure that a change can be written without space on the disk; nil if the
	// medium cannot.
	room func(Change) error
	// bytes returns how much room the log takes.
	bytes func() int64
}

// openKind verifies and opens the log at path.
func openKind(path string, kind LogKind) (*opened, error) {
	if kind == LogWAL {
		return openWAL(path)
	}
	img, err := scanFile(path)
	if err != nil {
		return nil, err
	}
	m, err := openBolt(path)
	if err != nil {
		return nil, err
	}
	return &opened{medium: m, path: path, image: img, bytes: func() int64 { return sizeOf(path) }}, nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// filler writes what a new log is to have.
type filler func(write func(Change) error) error

func empty(func(Change) error) error { return nil }

// buildKind makes a log beside path, where a crash leaves what is never taken for one, and
// what the next start removes, and returns its path. [placeLog] gives it its name.
func buildKind(path string, kind LogKind, fill filler) (string, error) {
	unfinished := path + unfinishedLog
	if kind == LogWAL {
		return unfinished, buildWAL(unfinished, fill)
	}
	return unfinished, buildBolt(unfinished, fill)
}

// placeLog gives the log its name: a raft.db or a folder wal that is empty or half
// written was never ours.
func placeLog(unfinished, path string) error {
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// scanKind verifies the log at path and changes nothing.
func scanKind(path string, kind LogKind) (*image, error) {
	if kind == LogWAL {
		return scanWAL(path)
	}
	return scanFile(path)
}

// scanLog verifies the log in a data directory and changes nothing.
func scanLog(dir string) (*image, error) {
	path, kind, err := FindLog(dir)
	if err != nil {
		return &image{}, err
	}
	return scanKind(path, kind)
}

// valid returns an error unless k is a kind, or zero.
func (k LogKind) valid() error {
	if k != "" && !slices.Contains(LogKinds(), k) {
		return fmt.Errorf("storage: there is no kind of log %q", k)
	}
	return nil
}
