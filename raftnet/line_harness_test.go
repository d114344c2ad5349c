package raftnet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

const lineTTL = 40 * time.Second // polls of 10 s

// told is what a poll was answered.
type told struct {
	lease.Answer
	err error
}

// waiting is a poll under way.
type waiting struct {
	answer chan told
	cancel context.CancelFunc
}

// poll has owner wait for k, under a request id that is the owner's name.
func (m *member) poll(owner string, wait, waited time.Duration) waiting {
	ctx, cancel := context.WithCancel(context.Background())
	w := waiting{answer: make(chan told, 1), cancel: cancel}
	mutation := lease.AcquireRequest{Key: "k", Owner: owner, TTL: lineTTL, RequestID: owner}.Mutation()
	go func() {
		answer, err := m.Wait(ctx, lease.Poll{Mutation: mutation, Wait: wait, Waited: waited})
		w.answer <- told{answer, err}
	}()
	synctest.Wait()
	return w
}

// pending fails the test if the poll has been answered.
func (w waiting) pending(t *testing.T, who string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-w.answer:
		t.Errorf("%s: answered with epoch %d of %q, %v", who, got.Record.Epoch, got.Record.Owner, got.err)
	default:
	}
}

// granted waits for the grant of this epoch.
func (w waiting) granted(t *testing.T, who string, epoch uint64) lease.Answer {
	t.Helper()
	got := <-w.answer
	if got.err != nil || got.Record.Epoch != epoch || got.Record.Owner != who {
		t.Errorf("%s: want epoch %d, got epoch %d of %q, %v", who, epoch, got.Record.Epoch, got.Record.Owner, got.err)
	}
	return got.Answer
}

// placed waits for a refusal with this place in line.
func (w waiting) placed(t *testing.T, who string, place int) {
	t.Helper()
	got := <-w.answer
	var held *lease.HeldError
	if !errors.As(got.err, &held) || held.Place != place {
		t.Errorf("%s: want place %d, got %+v, %v", who, place, got.Answer, got.err)
	}
}

func release(owner string, epoch uint64) lease.Mutation {
	return lease.ReleaseRequest{Key: "k", Owner: owner, Epoch: epoch}.Mutation()
}

// history returns what happened to k: "7 acquire a 1".
func (m *member) history(t *testing.T) []string {
	t.Helper()
	view, err := m.fsm.History(fsm.HistoryQuery{Key: "k", Limit: 1000, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range view.Entries {
		lines = append(lines, fmt.Sprintf("%d %v %s %d", e.Index, e.Op, e.Owner, e.Epoch))
	}
	return lines
}

// inLine runs test with a leader of n nodes at which holder has k at epoch 1.
func inLine(t *testing.T, n int, test func(t *testing.T, c *cluster, l *member)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, n)
		defer c.close()
		l := c.leader()
		l.must(t, acquire("k", "holder", lineTTL))
		test(t, c, l)
	})
}

func (m *member) must(t *testing.T, mutation lease.Mutation) lease.Answer {
	t.Helper()
	answer, err := m.do(mutation)
	if err != nil {
		t.Fatalf("%v: %v", mutation.Op, err)
	}
	return answer
}
