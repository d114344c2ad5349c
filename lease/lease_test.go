package lease_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func TestInstantMillis(t *testing.T) {
	for _, c := range []struct {
		instant lease.Instant
		want    int64
	}{{0, 0}, {1, 0}, {999_999, 0}, {1_000_000, 1}, {1_999_999, 1}, {1_764_000_000_123_456_789, 1_764_000_000_123}} {
		if got := c.instant.Millis(); got != c.want {
			t.Errorf("%d ns are %d ms, want %d", c.instant, got, c.want)
		}
	}
}

func TestInstantOfMillis(t *testing.T) {
	for _, ms := range []int64{0, 1, 1_764_000_000_123} {
		instant := lease.InstantOfMillis(ms)
		if instant.Millis() != ms || int64(instant) != ms*1_000_000 {
			t.Errorf("%d ms became %d ns and came back as %d ms", ms, instant, instant.Millis())
		}
	}
}

func TestInstantArithmetic(t *testing.T) {
	start := lease.InstantOfMillis(1000)
	end := start.Add(250 * time.Millisecond)
	if end.Millis() != 1250 || end.Sub(start) != 250*time.Millisecond || start.Sub(end) != -250*time.Millisecond {
		t.Errorf("1000 ms + 250 ms = %d ms, apart by %v and %v", end.Millis(), end.Sub(start), start.Sub(end))
	}
}

func TestRecordIsOverAtItsEndInstant(t *testing.T) {
	end := lease.InstantOfMillis(1000)
	granted := lease.Record{Key: "k", Owner: "o", Epoch: 1, LeaseUntil: end}
	for _, c := range []struct {
		record    lease.Record
		now       lease.Instant
		over      bool
		remaining time.Duration
	}{
		{granted, end - 1, false, 1},
		{granted, end.Add(-time.Second), false, time.Second},
		{granted, end, true, 0},
		{granted, end + 1, true, 0},
		{lease.Record{Key: "k"}, 0, true, 0},
		{lease.Record{Key: "k", LeaseUntil: end}, 0, true, 0},
	} {
		if over, remaining := c.record.OverAt(c.now), c.record.RemainingAt(c.now); over != c.over || remaining != c.remaining {
			t.Errorf("epoch %d until %d at %d: over %v, remaining %v, want %v, %v", c.record.Epoch, c.record.LeaseUntil, c.now, over, remaining, c.over, c.remaining)
		}
	}
}

// The numbers are in logs and snapshots, the words in scripts and dashboards.
func TestOpNumbersAndWords(t *testing.T) {
	for op, c := range map[lease.Op]struct {
		number uint8
		word   string
	}{
		lease.OpAcquire: {1, "acquire"}, lease.OpRenew: {2, "renew"}, lease.OpRelease: {3, "release"}, lease.OpForget: {4, "forget"}, 99: {99, "op(99)"},
	} {
		if uint8(op) != c.number || op.String() != c.word {
			t.Errorf("op %d is %q, want %d and %q", op, op, c.number, c.word)
		}
	}
}

func TestRequestsAsMutations(t *testing.T) {
	attributes := map[string]string{"addr": "h:1"}
	for name, c := range map[string]struct{ got, want lease.Mutation }{
		"acquire": {
			lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Second, RequestID: "id", Attributes: attributes}.Mutation(),
			lease.Mutation{Op: lease.OpAcquire, Key: "k", Owner: "o", TTL: time.Second, RequestID: "id", Attributes: attributes},
		},
		"renew": {
			lease.RenewRequest{Key: "k", Owner: "o", Epoch: 2, TTL: time.Second}.Mutation(),
			lease.Mutation{Op: lease.OpRenew, Key: "k", Owner: "o", Epoch: 2, TTL: time.Second},
		},
		"release": {
			lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: 2}.Mutation(),
			lease.Mutation{Op: lease.OpRelease, Key: "k", Owner: "o", Epoch: 2},
		},
		"forget": {
			lease.ForgetRequest{Key: "k", Owner: "o", Epoch: 2}.Mutation(),
			lease.Mutation{Op: lease.OpForget, Key: "k", Owner: "o", Epoch: 2},
		},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s is %+v, want %+v", name, c.got, c.want)
		}
		if err := c.got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSystemClock(t *testing.T) {
	before := time.Now()
	clock := lease.NewSystemClock()
	last := clock.Monotonic()
	for range 1000 {
		next := clock.Monotonic()
		if next < last {
			t.Fatalf("went back from %v to %v", last, next)
		}
		last = next
	}
	if passed := time.Since(before); last > passed {
		t.Errorf("%v have passed on the clock, %v in truth", last, passed)
	}
	if wall := clock.Wall(); wall.Sub(before).Abs() > time.Hour {
		t.Errorf("the wall clock says %v, it is %v", wall, before)
	}
}
