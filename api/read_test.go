package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const stale = leasepb.Consistency_CONSISTENCY_STALE

func get(t *testing.T, n *running, consistency leasepb.Consistency) *leasepb.Answer {
	t.Helper()
	resp, err := n.leases.Get(within(t), &leasepb.GetRequest{Key: []byte("k"), Consistency: consistency})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetAnswer()
}

func TestWhatRemainsIsCountedOnTheLeadersClock(t *testing.T) {
	n := startLeader(t)
	for _, c := range []struct {
		name             string
		until, now, read lease.Instant
		remaining        int64
		ticks            int
	}{
		{"held", at(1_000_500), at(1_000_000), at(1_000_200), 300, 0},
		{"held by a nanosecond", at(1_000_500), at(1_000_000), at(1_000_500) - 1, 1, 0},
		{"over by the leader's clock alone", at(1_000_500), at(1_000_000), at(1_000_500), 0, 1},
		{"over by the log", at(1_000_500), at(1_000_500), at(1_000_500), 0, 0},
		{"a reading behind the log", at(1_000_500), at(1_000_400), at(1_000_000), 100, 0},
	} {
		n.locked(func() {
			n.records = []lease.Record{{Key: "k", Owner: "o", Epoch: 1, LeaseUntil: c.until}}
			n.now, n.reading, n.ticks = c.now, c.read, 0
		})
		a := get(t, n, 0)
		if a.GetRemainingMs() != c.remaining || n.ticks != c.ticks {
			t.Errorf("%s: %d ms remain after %d ticks, want %d after %d", c.name, a.GetRemainingMs(), n.ticks, c.remaining, c.ticks)
		}
	}
}

func TestAKeyThatWasNeverGrantedIsFree(t *testing.T) {
	n := startLeader(t)
	a := get(t, n, 0)
	if string(a.GetRecord().GetKey()) != "k" || a.GetRecord().GetEpoch() != 0 || a.GetRemainingMs() != 0 || n.ticks != 0 {
		t.Errorf("got %v after %d ticks", a, n.ticks)
	}
}

func TestALeaseIsOverOnlyWhenTheLogSaysSo(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.records = []lease.Record{{Key: "k", Owner: "o", Epoch: 1, LeaseUntil: at(1_000_500)}}
		n.reading = at(2_000_000)
		n.tick = func(context.Context) error { return nil } // goes in, and moves nothing
	})
	if a := get(t, n, 0); a.GetRemainingMs() != 500 || a.GetNowMs() != 1_000_000 {
		t.Errorf("got %v: the log has the lease held for another 500 ms", a)
	}
	if n.ticks == 0 || n.ticks > 2 {
		t.Errorf("%d ticks for one read", n.ticks)
	}
}

func TestAReadThatProvesNothingIsUnavailable(t *testing.T) {
	for name, breakIt := range map[string]func(*fakeNode){
		"no confirmation": func(f *fakeNode) { f.confirm = func(context.Context) error { return lease.ErrUnavailable } },
		"tick unknown":    func(f *fakeNode) { f.tick = func(context.Context) error { return lease.ErrOutcomeUnknown } },
		"tick impossible": func(f *fakeNode) { f.tick = func(context.Context) error { return lease.ErrUnavailable } },
		"leadership is gone": func(f *fakeNode) {
			f.confirm = func(context.Context) error { f.locked(func() { f.leads = false }); return nil }
		},
	} {
		n := startLeader(t)
		n.locked(func() {
			n.records = []lease.Record{{Key: "k", Owner: "o", Epoch: 1, LeaseUntil: at(1_000_500)}}
			n.reading = at(1_000_500)
			breakIt(n.fakeNode)
		})
		_, err := n.leases.Get(within(t), &leasepb.GetRequest{Key: []byte("k")})
		t.Run(name, func(t *testing.T) { wantCode(t, err, wire.Mutates, lease.CodeUnavailable) })
	}
}

func TestStaleReadsNeedNobody(t *testing.T) {
	n := start(t, "n3") // no leader, no peers
	n.locked(func() {
		n.confirm = func(context.Context) error { return errors.New("asked") }
		n.records = []lease.Record{{Key: "k", Owner: "o", Epoch: 1, LeaseUntil: at(1_000_500)}}
		n.entries = []lease.Entry{{Index: 1, Op: lease.OpAcquire, Key: "k", Owner: "o", Epoch: 1}}
	})
	if a := get(t, n, stale); a.GetRemainingMs() != 500 || a.GetRecord().GetEpoch() != 1 {
		t.Errorf("got %v", a)
	}
	list, err := n.leases.List(within(t), &leasepb.ListRequest{Consistency: stale})
	if err != nil || len(list.GetLeases()) != 1 || list.GetNowMs() != 1_000_000 {
		t.Errorf("got %v, %v", list, err)
	}
	history, err := n.leases.History(within(t), &leasepb.HistoryRequest{Consistency: stale})
	if err != nil || len(history.GetEntries()) != 1 {
		t.Errorf("got %v, %v", history, err)
	}
}

func TestAListingIsOneStateAPage(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.reading = at(1_000_250)
		for i := range 10 { // a0 to a9 end 100 ms apart
			n.records = append(n.records, lease.Record{Key: fmt.Sprintf("a%d", i), Owner: "o", Epoch: 1, LeaseUntil: at(1_000_000 + int64(i)*100)})
		}
		n.records = append(n.records, lease.Record{Key: "b", Owner: "o", Epoch: 1, LeaseUntil: at(1_009_000)})
	})
	req := &leasepb.ListRequest{Prefix: []byte("a"), HeldOnly: true, PageSize: 3}
	var seen []string
	for {
		resp, err := n.leases.List(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range resp.GetLeases() {
			seen = append(seen, fmt.Sprintf("%s:%d", l.GetRecord().GetKey(), l.GetRemainingMs()))
		}
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			break
		}
	}
	if got, want := strings.Join(seen, " "), "a3:50 a4:150 a5:250 a6:350 a7:450 a8:550 a9:650"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n.ticks != 1 {
		t.Errorf("%d ticks, want the one of the first page", n.ticks)
	}
}

func TestLeasesThatEndAllTheTimeDoNotHoldAPageUp(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		for i := range 100 {
			n.records = append(n.records, lease.Record{Key: fmt.Sprintf("k%02d", i), Owner: "o", Epoch: 1, LeaseUntil: at(1_000_000 + int64(i))})
		}
		n.reading = at(1_000_005)
		n.tick = func(context.Context) error { n.now, n.reading = n.reading, n.reading.Add(5_000_000); return nil }
	})
	resp, err := n.leases.List(within(t), &leasepb.ListRequest{})
	if err != nil || n.ticks != 2 {
		t.Fatalf("%v after %d ticks", err, n.ticks)
	}
	for i, l := range resp.GetLeases() {
		if want := max(0, 1_000_000+int64(i)-resp.GetNowMs()); l.GetRemainingMs() != want {
			t.Errorf("%v: want %d at %d", l, want, resp.GetNowMs())
		}
	}
}

func TestHistoryInPages(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		for i := range 7 {
			n.entries = append(n.entries, lease.Entry{Index: uint64(i + 1), Op: lease.OpRenew, Key: "k", Owner: "o", Epoch: 1})
		}
	})
	req := &leasepb.HistoryRequest{Key: []byte("k"), PageSize: 3}
	var seen []uint64
	for {
		resp, err := n.leases.History(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range resp.GetEntries() {
			seen = append(seen, e.GetIndex())
		}
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			break
		}
	}
	if fmt.Sprint(seen) != "[1 2 3 4 5 6 7]" {
		t.Errorf("got %v", seen)
	}
}

func TestAPageTokenIsGoodForItsRequestOnly(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.records = []lease.Record{{Key: "a1", Epoch: 1}, {Key: "a2", Epoch: 1}}
		n.entries = []lease.Entry{{Index: 1, Key: "a1"}, {Index: 2, Key: "a1"}}
	})
	list, err := n.leases.List(within(t), &leasepb.ListRequest{Prefix: []byte("a"), PageSize: 1})
	if err != nil || list.GetNextPageToken() == "" {
		t.Fatalf("%v, %v", list, err)
	}
	history, err := n.leases.History(within(t), &leasepb.HistoryRequest{Key: []byte("a1"), PageSize: 1})
	if err != nil || history.GetNextPageToken() == "" {
		t.Fatalf("%v, %v", history, err)
	}
	token := list.GetNextPageToken()
	for name, req := range map[string]*leasepb.ListRequest{
		"other prefix":     {Prefix: []byte("b"), PageToken: token},
		"other selection":  {Prefix: []byte("a"), HeldOnly: true, PageToken: token},
		"of a history":     {Prefix: []byte("a1"), PageToken: history.GetNextPageToken()},
		"cut":              {Prefix: []byte("a"), PageToken: token[:len(token)-2]},
		"lengthened":       {Prefix: []byte("a"), PageToken: token + "AA"},
		"another version":  {Prefix: []byte("a"), PageToken: "Ag" + token[2:]},
		"with a line feed": {Prefix: []byte("a"), PageToken: token[:4] + "\n" + token[4:]},
		"not base64":       {Prefix: []byte("a"), PageToken: "ö"},
	} {
		_, err := n.leases.List(within(t), req)
		t.Run(name, func(t *testing.T) { wantInvalid(t, err, "page_token") })
	}
	for name, req := range map[string]*leasepb.HistoryRequest{
		"other key": {Key: []byte("a2"), PageToken: history.GetNextPageToken()},
		"all keys":  {PageToken: history.GetNextPageToken()},
		"of a list": {Key: []byte("a"), PageToken: token},
	} {
		_, err := n.leases.History(within(t), req)
		t.Run(name, func(t *testing.T) { wantInvalid(t, err, "page_token") })
	}
}
