package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A log of another kind than is wanted is converted before it is opened: the new one is
// built beside, read again and compared, then the old one is renamed, the new one gets its
// name, and the old one is removed. At a start that finds an old one under its other name,
// the new one is there, and the old one is removed, or it is not, and the old one gets its
// name back.

// settleLog returns the log to be opened: it finishes or undoes a conversion, makes a log
// where there is none, and converts one of another kind.
func settleLog(cfg Config) (string, LogKind, error) {
	if err := settleConversion(cfg); err != nil {
		return "", "", fmt.Errorf("finish a conversion of the log: %w", err)
	}
	path, kind, err := FindLog(cfg.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeLog(cfg)
	case err != nil:
		return "", "", err
	case cfg.Log == "" || cfg.Log == kind:
		return path, kind, nil
	}
	if err := convert(cfg, path, kind); err != nil {
		return "", "", fmt.Errorf("convert the log from %s to %s: %w", kind, cfg.Log, err)
	}
	return filepath.Join(cfg.Dir, cfg.Log.name()), cfg.Log, nil
}

// makeLog makes a log with nothing in it.
func makeLog(cfg Config) (string, LogKind, error) {
	kind := cfg.Log
	if kind == "" {
		kind = LogBolt
	}
	path := filepath.Join(cfg.Dir, kind.name())
	if cfg.Begun {
		return "", "", &CorruptError{File: path, Place: "its directory", Problem: "it is missing"}
	}
	unfinished, err := buildKind(path, kind, empty)
	if err == nil {
		err = placeLog(unfinished, path)
	}
	if err != nil {
		return "", "", fmt.Errorf("make the log: %w", err)
	}
	return path, kind, nil
}

// settleConversion finishes or undoes what a crash has left of a conversion.
func settleConversion(cfg Config) error {
	for _, kind := range LogKinds() {
		if err := os.RemoveAll(filepath.Join(cfg.Dir, kind.name()+unfinishedLog)); err != nil {
			return err
		}
	}
	for _, kind := range LogKinds() {
		path := filepath.Join(cfg.Dir, kind.name())
		other := filepath.Join(cfg.Dir, kind.other().name())
		if !exists(path+replacedLog) || exists(path) || exists(other+replacedLog) {
			continue
		}
		if exists(other) {
			return removeReplaced(path)
		}
		cfg.Logger.Warn("a conversion of the log was interrupted: it is undone", "log", path)
		if err := os.Rename(path+replacedLog, path); err != nil {
			return err
		}
		return syncDir(cfg.Dir)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeReplaced removes the log that was at path. A crash leaves what is removed at the
// next start.
func removeReplaced(path string) error {
	if err := os.RemoveAll(path + replacedLog); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// convert replaces the log at path by one of the kind that is wanted.
func convert(cfg Config, path string, kind LogKind) error {
	from, err := openKind(path, kind)
	if err != nil {
		return err
	}
	to := filepath.Join(cfg.Dir, cfg.Log.name())
	unfinished, err := buildKind(to, cfg.Log, from.copyTo)
	if err = errors.Join(err, from.medium.Close()); err != nil {
		return err
	}
	made, err := scanKind(unfinished, cfg.Log)
	if err != nil {
		return err
	}
	if !bytes.Equal(made.head.encode(), from.image.head.encode()) {
		return fmt.Errorf("%s has not what %s has", unfinished, path)
	}
	for _, step := range []func() error{
		func() error { return os.Rename(path, path+replacedLog) },
		func() error { return syncDir(cfg.Dir) },
		func() error { return placeLog(unfinished, to) },
		func() error { return removeReplaced(path) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	cfg.Logger.Info("the log is kept in another way now", "from", kind, "to", cfg.Log, "log", to, "entries", entriesOf(made.head))
	return nil
}

func entriesOf(h *head) uint64 {
	if h.first == 0 {
		return 0
	}
	return h.last - h.first + 1
}

// copyTo is a [filler]. The head is written last: until then the log is of no use.
func (o *opened) copyTo(write func(Change) error) error {
	const portion = 1 << 20
	h := o.image.head
	c, size := Change{Head: (&head{}).encode()}, 0
	for i := h.first; i > 0 && i <= h.last; i++ {
		value, err := o.medium.Read(i)
		if err != nil {
			return fmt.Errorf("read entry %d: %w", i, err)
		}
		c.Put = append(c.Put, Entry{i, value})
		if size += len(value); size < portion && i < h.last {
			continue
		}
		if err := write(c); err != nil {
			return err
		}
		c.Put, size = nil, 0
	}
	return write(Change{Head: h.encode()})
}
