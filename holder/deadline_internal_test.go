package holder

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheDeadlineIsTheSendOfTheAnsweredTryPlusWhatRemainsLessTheMargin(t *testing.T) {
	for _, c := range []struct {
		sent, remaining, margin time.Duration
		deadline, hard, end     time.Duration
	}{
		{sent: 0, remaining: 10 * time.Second, margin: 2 * time.Second, deadline: 8 * time.Second, hard: 9 * time.Second, end: 10 * time.Second},
		{sent: 5 * time.Second, remaining: 10 * time.Second, margin: 2 * time.Second, deadline: 13 * time.Second, hard: 14 * time.Second, end: 15 * time.Second},
		{sent: 5 * time.Second, remaining: time.Second, margin: 2 * time.Second, deadline: 4 * time.Second, hard: 5 * time.Second, end: 6 * time.Second},
		{sent: 1, remaining: 0, margin: 2, deadline: -1, hard: 0, end: 1},
	} {
		terms := terms{ttl: 10 * time.Second, margin: c.margin}
		end := proof{sent: c.sent, remaining: c.remaining}.end()
		if end != c.end || terms.deadline(end) != c.deadline || terms.hardDeadline(end) != c.hard {
			t.Errorf("%+v: got end %v, deadline %v, hard deadline %v", c, end, terms.deadline(end), terms.hardDeadline(end))
		}
	}
}

func someTerms(t *rapid.T) terms {
	ttl := time.Duration(rapid.Int64Range(100, 86_400_000).Draw(t, "ttl_ms")) * time.Millisecond
	return terms{ttl: ttl, margin: time.Duration(rapid.Int64Range(1, int64(ttl)-1).Draw(t, "margin"))}
}

// Whatever the terms, and however late the first renewal is by its spread, at least
// three tries that hang fit between it and the deadline, unless the whole window is
// shorter than three round trips can be.
func TestThreeTriesThatHangFitInTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := someTerms(t)
		if terms.window() < 80*time.Millisecond {
			t.Skip("no window to speak of")
		}
		now := terms.interval() + terms.interval()/10
		tries := 0
		for now < terms.window() && tries < 3 {
			left := terms.left(terms.ttl, now)
			if now += terms.try(left); now > terms.window() {
				t.Fatalf("try %d hangs beyond the deadline", tries+1)
			}
			tries++
			now += terms.pause(terms.left(terms.ttl, now)) * 11 / 10
		}
		if tries < 3 {
			t.Fatalf("%d tries fit", tries)
		}
	})
}

func TestTheIntervalIsAThirdOfTheTTL(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, 10 * time.Second, 24 * time.Hour} {
		if got := (terms{ttl: ttl, margin: ttl / 5}).interval(); got != ttl/3 {
			t.Errorf("ttl %v: %v", ttl, got)
		}
	}
	if got := (terms{ttl: 10 * time.Second, margin: 8 * time.Second}).interval(); got != time.Second {
		t.Errorf("with a window of 2s: %v", got)
	}
}

func TestTriesAndPausesShortenAsTheDeadlineNears(t *testing.T) {
	terms := terms{ttl: 10 * time.Second, margin: 2 * time.Second}
	try, pause := terms.try(8*time.Second), terms.pause(8*time.Second)
	for left := 8 * time.Second; left > 0; left -= 10 * time.Millisecond {
		nextTry, nextPause := terms.try(left), terms.pause(left)
		if nextTry > try || nextPause > pause || nextTry < leastTry || nextPause < leastPause {
			t.Fatalf("with %v left: try %v after %v, pause %v after %v", left, nextTry, try, nextPause, pause)
		}
		try, pause = nextTry, nextPause
	}
	if try != leastTry || pause != leastPause {
		t.Errorf("in the end: try %v, pause %v", try, pause)
	}
}

func TestWhatThereIsToSave(t *testing.T) {
	terms := terms{ttl: 10 * time.Second, margin: 2 * time.Second}
	for now, want := range map[time.Duration]time.Duration{
		0: 8 * time.Second, 7 * time.Second: time.Second, 8*time.Second - 1: 1,
		8 * time.Second: 2 * time.Second, 9 * time.Second: time.Second,
		10 * time.Second: 8 * time.Second, time.Hour: 8 * time.Second,
	} {
		if got := terms.left(10*time.Second, now); got != want {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
}

func TestSpreadIsATenthEitherWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "d"))
		if got := spread(d); got < d-d/10 || got > d+d/10 {
			t.Fatalf("%v became %v", d, got)
		}
	})
}

func TestNoRenewalTravelsWithOneThatCutsItShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SliceOfN(rapid.Int64Range(1, 1000), 0, 3000).Draw(t, "bounds")
		var due []renewal
		for _, bound := range bounds {
			due = append(due, renewal{bound: time.Duration(bound)})
		}
		n := 0
		for _, batch := range inBatches(due) {
			n += len(batch)
			if len(batch) == 0 || len(batch) > 1000 {
				t.Fatalf("a batch of %d", len(batch))
			}
			for _, r := range batch {
				if r.bound < batch[0].bound || r.bound > 2*batch[0].bound {
					t.Fatalf("%v travels with %v", r.bound, batch[0].bound)
				}
			}
		}
		if n != len(bounds) {
			t.Fatalf("%d of %d travel", n, len(bounds))
		}
	})
}
