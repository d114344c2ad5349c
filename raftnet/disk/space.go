package disk

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// space refuses what would grow while the disk is nearly full, so that neither bbolt
// nor a snapshot runs into its end.
//
// What bbolt does when it runs into the end cannot be lived with. The error of a
// commit does not tell whether a data page, an fsync or the meta page failed. After a
// data page, nothing has changed on the disk, and bbolt only reads the whole file
// again to find its free pages. After an fsync, pages that were written are lost though
// the kernel still shows them. After the meta page, the transaction that was called
// failed is what every later one builds on. So any error of bbolt closes the latch,
// ENOSPC too, and the process starts again on what the disk has. bbolt's MaxSize is
// not used: it bounds one file, and knows nothing of what else fills the disk.
//
// Between two looks at the disk, what is written is reckoned with, twice, since bbolt
// copies the pages it changes.
type space struct {
	dir  string
	free func(dir string) (uint64, error)
	// reserve is what has to be free, unless twice the biggest batch is more.
	reserve uint64
	logger  hclog.Logger
	metrics *metrics
	// watchdog watches the looks: they too can hang.
	watchdog *watchdog
	spare    *spare
	// full is written by the holder of mu.
	full atomic.Bool

	mu      sync.Mutex
	looked  time.Time
	left    uint64 // free at the last look, less what was written since
	biggest uint64 // the biggest batch
	fault   error  // of the last look
}

const (
	lookInterval    = 250 * time.Millisecond
	defaultReserve  = 64 << 20
	copiesOfAChange = 2
)

func newSpace(cfg Config, m *metrics, w *watchdog) *space {
	return &space{dir: cfg.Dir, free: cfg.Free, reserve: cfg.Reserve, logger: cfg.Logger, metrics: m, watchdog: w, spare: &spare{dir: cfg.Dir}}
}

// admit returns a [*FullError] if there is no room to write size bytes, and counts
// them otherwise. If it cannot be told how much is free, all is admitted.
func (s *space) admit(size uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.biggest = max(s.biggest, size)
	if s.left < s.neededLocked()+copiesOfAChange*size || time.Since(s.looked) >= lookInterval {
		s.lookLocked()
	}
	if s.full.Load() {
		return s.refuseLocked()
	}
	s.left -= min(s.left, copiesOfAChange*size)
	return nil
}

// exhausted says that there was no space though it was admitted, and returns the
// [*FullError]: somebody else has taken it.
func (s *space) exhausted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full.Store(true)
	s.lookLocked()
	return s.refuseLocked()
}

func (s *space) refuseLocked() error {
	s.metrics.refused.Inc()
	needed := s.neededLocked()
	return &FullError{Dir: s.dir, Free: s.left, Reserve: needed + slack(needed)}
}

func (s *space) neededLocked() uint64 { return max(s.reserve, copiesOfAChange*s.biggest) }

// slack is how much more than needed has to be free for a disk to be full no longer, so
// that it does not flap, least of all because the spare file is given back.
func slack(needed uint64) uint64 { return max(needed/4, 2*spareBytes) }

// lookLocked asks how much is free.
func (s *space) lookLocked() {
	end := s.watchdog.begin(opLook)
	free, err := s.free(s.dir)
	end()
	s.looked, s.fault = time.Now(), err
	if err != nil {
		s.full.Store(false)
		return
	}
	s.left = free
	needed := s.neededLocked()
	if s.full.Load() {
		needed += slack(needed)
	}
	s.full.Store(free < needed)
}

// tendLoop keeps an eye on the disk also while nothing is written, says when it gets
// full and when there is space again, and tends the spare.
func (s *space) tendLoop(stop <-chan struct{}) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	said := ""
	for {
		said = s.tend(said)
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// tend is one look; said is what was logged last.
func (s *space) tend(said string) string {
	s.mu.Lock()
	s.lookLocked()
	left, needed, full, fault := s.left, s.neededLocked(), s.full.Load(), s.fault
	s.mu.Unlock()
	state := ""
	switch {
	case fault != nil:
		state = fmt.Sprintf("it cannot be told how much space is free: %v", fault)
	case full:
		state = "the disk is full: nothing is accepted until there is space"
	}
	if state != said && state != "" {
		s.logger.Warn(state, "dir", s.dir, "free", left, "reserve", needed)
	}
	if state == "" && said != "" {
		s.logger.Info("there is space on the disk", "dir", s.dir, "free", left)
	}
	if fault == nil {
		s.tendSpare(left, needed, full)
	}
	return state
}

func (s *space) tendSpare(left, needed uint64, full bool) {
	switch {
	case left < spareBytes/2:
		given, err := s.spare.give()
		if given || err != nil {
			s.logger.Warn("the spare file is given back, so that votes can be written", "dir", s.dir, "error", err)
		}
	case !full && left > needed+slack(needed)+spareBytes:
		if err := s.spare.make(); err != nil {
			s.logger.Warn("the spare file cannot be made", "dir", s.dir, "error", err)
		}
	}
}
