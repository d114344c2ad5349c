package disk_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

var errInjected = errors.New("input/output error")

// faulty is a medium that fails at its calls number failWrite and failRead, counted
// from 1, in one of the ways that a disk has.
type faulty struct {
	disk.Medium
	failWrite, failRead int32
	way                 way

	writes, reads, after atomic.Int32
}

type way int

const (
	failBefore way = iota // nothing is done
	failAfter             // all is done, and then it fails
	failPanic             // bbolt's way with damaged pages
	ways
)

func (f *faulty) Write(c disk.Change) error {
	n := f.writes.Add(1)
	if n > f.failWrite {
		f.after.Add(1)
	}
	if n != f.failWrite {
		return f.Medium.Write(c)
	}
	switch f.way {
	case failAfter:
		return errors.Join(f.Medium.Write(c), errInjected)
	case failPanic:
		panic("page 7 makes no sense")
	default:
		return errInjected
	}
}

func (f *faulty) Read(index uint64) ([]byte, error) {
	if f.reads.Add(1) == f.failRead {
		return nil, errInjected
	}
	return f.Medium.Read(index)
}

// model is what a storage has to have.
type model struct {
	log     []*raft.Log
	vote    vote
	covered uint64
}

// last is the index of the last entry.
func (m *model) last() uint64 { return m.log[len(m.log)-1].Index }

// step does one random thing to s, and returns the model after it.
func (m *model) step(r *rand.Rand, s *disk.Stores) (model, error) {
	next := *m
	switch r.IntN(8) {
	case 0:
		next.vote.current = m.vote.current + 1 + uint64(r.IntN(3))
		return next, setTerm(s, next.vote.current)
	case 1:
		next.vote.term, next.vote.candidate = m.vote.current, fmt.Sprintf("n%d", r.IntN(5))
		return next, castVote(s, next.vote.term, next.vote.candidate)
	case 2:
		next.covered = m.log[r.IntN(len(m.log))].Index
		if next.covered < m.covered {
			return *m, nil
		}
		_, err := takeSnapshot(s, next.covered, m.vote.current, r.IntN(2000))
		return next, err
	case 3:
		high := min(m.covered, m.last()-1)
		if high < m.log[0].Index {
			return *m, nil
		}
		next.log = m.log[high-m.log[0].Index+1:]
		return next, s.Logs.DeleteRange(0, high)
	case 4:
		low := m.last() - min(m.last()-1, uint64(r.IntN(3)))
		if low <= m.covered || low <= m.log[0].Index {
			return *m, nil
		}
		next.log = m.log[: low-m.log[0].Index : low-m.log[0].Index]
		return next, s.Logs.DeleteRange(low, m.last())
	default:
		more := entries(m.last()+1, m.last()+1+uint64(r.IntN(5)), m.vote.current)
		next.log = append(m.log[:len(m.log):len(m.log)], more...)
		return next, s.Logs.StoreLogs(more)
	}
}

// has returns an error if s has not what the model has.
func (m *model) has(t *testing.T, s *disk.Stores) error {
	if got := readVote(t, s); got != m.vote {
		return fmt.Errorf("the vote is %+v, want %+v", got, m.vote)
	}
	return compareLog(s.Logs, m.log)
}

// A write that fails at any point of a run is the last: nothing is acknowledged after
// it, and what was before is all there.
func TestNothingIsAcknowledgedAfterTheFirstFailure(t *testing.T) {
	onEach(t, testNothingIsAcknowledgedAfterTheFirstFailure)
}

func testNothingIsAcknowledgedAfterTheFirstFailure(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		dir := quickDir(t)
		var failed failures
		f := &faulty{failWrite: 2 + r.Int32N(40), way: way(r.IntN(int(ways)))}
		cfg := config(t, dir)
		cfg.OnFailure = failed.onFailure
		cfg.Wrap = func(m disk.Medium) disk.Medium { f.Medium = m; return f }
		s, err := disk.Open(cfg)
		must(t, err)
		before := model{log: entries(1, 1, 1)}
		must(t, s.Logs.StoreLogs(before.log))
		after := before
		for err == nil {
			before = after
			after, err = before.step(r, s)
		}
		checkLatched(t, s, err, &failed)
		if n := f.after.Load(); n > 0 {
			t.Errorf("seed %d: %d writes after the failure", seed, n)
		}
		again := open(t, config(t, crashed(t, dir)))
		if err1, err2 := before.has(t, again), after.has(t, again); err1 != nil && err2 != nil {
			t.Errorf("seed %d: it has neither what was before (%v) nor what is after (%v)", seed, err1, err2)
		}
		closeStores(t, again)
		if err := s.Close(); err != nil && f.way != failPanic {
			t.Error(err)
		}
		if f.way == failPanic {
			must(t, f.Medium.Close()) // what has panicked is not closed
		}
	}
}

// checkLatched fails the test unless every write fails with err.
func checkLatched(t *testing.T, s *disk.Stores, err error, failed *failures) {
	t.Helper()
	want, ok := errors.AsType[*disk.StorageError](err)
	if !ok || s.Err() != error(want) || failed.count.Load() != 1 || *failed.err.Load() != error(want) {
		t.Fatalf("%v, %v, %d failures", err, s.Err(), failed.count.Load())
	}
	last, _ := s.Logs.LastIndex()
	_, create := takeSnapshot(s, 1000, 1000, 8)
	for what, err := range map[string]error{
		"StoreLog":       s.Logs.StoreLog(entry(last+1, 1)),
		"DeleteRange":    s.Logs.DeleteRange(last, last),
		"SetUint64":      setTerm(s, 1000),
		"term of a vote": s.Stable.SetUint64([]byte("LastVoteTerm"), 1000),
		"Set":            s.Stable.Set([]byte("k"), nil),
		"Create":         create,
	} {
		if got, _ := errors.AsType[*disk.StorageError](err); got != want {
			t.Errorf("%s after the failure: %v", what, err)
		}
	}
	if failed.count.Load() != 1 {
		t.Errorf("%d failures were told", failed.count.Load())
	}
}

func TestAReadThatFailsIsAFailure(t *testing.T) { onEach(t, testAReadThatFailsIsAFailure) }

func testAReadThatFailsIsAFailure(t *testing.T) {
	var failed failures
	f := &faulty{failRead: 3}
	cfg := config(t, t.TempDir())
	cfg.OnFailure = failed.onFailure
	cfg.Wrap = func(m disk.Medium) disk.Medium { f.Medium = m; return f }
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
	var err error
	for i := uint64(1); err == nil && i < 9; i++ {
		err = s.Logs.GetLog(i, &raft.Log{})
	}
	checkLatched(t, s, err, &failed)
}

// rotten is a medium that gives back other bytes.
type rotten struct {
	disk.Medium
	change func(index uint64, value []byte) []byte
}

func (m *rotten) Read(index uint64) ([]byte, error) {
	v, err := m.Medium.Read(index)
	return m.change(index, v), err
}

func TestOtherBytesAreRefusedWhenTheyAreRead(t *testing.T) {
	onEach(t, testOtherBytesAreRefusedWhenTheyAreRead)
}

func testOtherBytesAreRefusedWhenTheyAreRead(t *testing.T) {
	var first []byte
	for name, change := range map[string]func(uint64, []byte) []byte{
		"a bit":         func(_ uint64, v []byte) []byte { v[len(v)-1] ^= 4; return v },
		"nothing":       func(uint64, []byte) []byte { return nil },
		"too few":       func(_ uint64, v []byte) []byte { return v[:7] },
		"another entry": func(uint64, []byte) []byte { return first },
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			on := false
			cfg := config(t, t.TempDir())
			cfg.OnFailure = failed.onFailure
			cfg.Wrap = func(m disk.Medium) disk.Medium {
				return &rotten{m, func(index uint64, v []byte) []byte {
					if index == 1 {
						first = v
					}
					if !on {
						return v
					}
					return change(index, v)
				}}
			}
			s := open(t, cfg)
			must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
			must(t, s.Logs.GetLog(1, &raft.Log{}))
			on = true
			err := s.Logs.GetLog(5, &raft.Log{})
			corrupt, ok := errors.AsType[*disk.CorruptError](err)
			if !ok || corrupt.Index != 5 {
				t.Fatalf("%v", err)
			}
			checkLatched(t, s, err, &failed)
		})
	}
}

// While one call fails, many others are on their way; those that come back with nil
// were done before.
func TestTheLatchHoldsForAllAtOnce(t *testing.T) { onEach(t, testTheLatchHoldsForAllAtOnce) }

func testTheLatchHoldsForAllAtOnce(t *testing.T) {
	var failed failures
	f := &faulty{failWrite: 60}
	dir := t.TempDir()
	cfg := config(t, dir)
	cfg.OnFailure = failed.onFailure
	cfg.Wrap = func(m disk.Medium) disk.Medium { f.Medium = m; return f }
	s := open(t, cfg)
	must(t, s.Logs.StoreLog(entry(1, 1)))
	var acknowledged, term atomic.Uint64
	acknowledged.Store(1)
	var done sync.WaitGroup
	done.Go(func() {
		for i := uint64(2); s.Logs.StoreLog(entry(i, 1)) == nil; i++ {
			acknowledged.Store(i)
		}
	})
	done.Go(func() {
		for i := uint64(1); setTerm(s, i) == nil; i++ {
			term.Store(i)
		}
	})
	for range 3 {
		done.Go(func() {
			for s.Err() == nil {
				if err := s.Logs.GetLog(acknowledged.Load(), &raft.Log{}); err != nil {
					t.Errorf("an acknowledged entry: %v", err)
				}
			}
		})
	}
	done.Wait()
	checkLatched(t, s, s.Err(), &failed)
	again := open(t, config(t, crashed(t, dir)))
	checkLog(t, again.Logs, entries(1, acknowledged.Load(), 1))
	if got := readVote(t, again).current; got != term.Load() {
		t.Errorf("the term is %d, want %d", got, term.Load())
	}
}

// A write that was on its way when another call failed is not acknowledged, and no
// failure is returned to anybody before the owner knows.
func TestAFailureComesBeforeAllThatIsReturned(t *testing.T) {
	onEach(t, testAFailureComesBeforeAllThatIsReturned)
}

func testAFailureComesBeforeAllThatIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, hang := make(chan struct{}), make(chan struct{})
		inner := &slow{}
		f := &faulty{failRead: 1, Medium: inner}
		cfg := config(t, t.TempDir())
		cfg.OnFailure = func(error) { <-told }
		cfg.Wrap = func(m disk.Medium) disk.Medium { inner.Medium = m; f.failWrite = 99; return f }
		s := open(t, cfg)
		must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
		inner.hang.Store(&hang)
		returned := make(chan error, 3)
		go func() { returned <- setTerm(s, 7) }()
		synctest.Wait()
		for range 2 {
			f.reads.Store(0)
			go func() { returned <- s.Logs.GetLog(3, &raft.Log{}) }()
			synctest.Wait()
		}
		if len(returned) > 0 {
			t.Errorf("the owner does not know yet of %v", <-returned)
		}
		close(told)
		synctest.Wait()
		close(hang)
		for range cap(returned) {
			if err := <-returned; err == nil || err != s.Err() {
				t.Errorf("%v was returned, want %v", err, s.Err())
			}
		}
		closeStores(t, s)
	})
}

// What a crash leaves of a transaction is any part of its data, and the meta page only
// when all data are there.
func TestAnyPartOfATransactionIsNoneOfIt(t *testing.T) {
	dir := quickDir(t)
	path := filepath.Join(dir, disk.LogFile)
	s := open(t, config(t, dir))
	before := model{log: entries(1, 30, 1)}
	must(t, s.Logs.StoreLogs(before.log))
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		old, err := os.ReadFile(path)
		must(t, err)
		after, err := before.step(r, s)
		must(t, err)
		written, err := os.ReadFile(path)
		must(t, err)
		crash := crashed(t, dir)
		for try := range 6 {
			state, want := tear(r, old, written, try == 0), &before
			if try == 0 {
				want = &after
			}
			must(t, os.WriteFile(filepath.Join(crash, disk.LogFile), state, 0o600))
			again := open(t, config(t, crash))
			if err := want.has(t, again); err != nil {
				t.Errorf("seed %d, try %d: %v", seed, try, err)
			}
			closeStores(t, again)
		}
		before = after
	}
}

// tear returns old with a random part of the sectors of written, but its meta pages
// only with all.
func tear(r *rand.Rand, old, written []byte, all bool) []byte {
	const sector = 512
	metas := 2 * pageSize
	state := make([]byte, len(written))
	copy(state, old)
	for at := 0; at < len(written); at += sector {
		if all || at >= metas && r.IntN(2) == 0 {
			copy(state[at:at+sector], written[at:])
		}
	}
	return state
}
