package wire_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// sent returns p as the other side gets it.
func sent[M proto.Message](t *rapid.T, p M) M {
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	back := p.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, back); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	return back.(M)
}

func same[T any](t *rapid.T, want, got T, err error) {
	if err != nil {
		t.Fatalf("came back as error: %v", err)
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("sent %#v\ngot  %#v", want, got)
	}
}

func TestRecordsAnswersAndPagesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := answers().Draw(t, "answer")
		record, err := wire.RecordFromProto(sent(t, wire.RecordToProto(a.Record)))
		same(t, a.Record, record, err)
		got, err := wire.AnswerFromProto(sent(t, wire.MutationAnswerToProto(a)))
		same(t, a, got, err)
		got, err = wire.AnswerFromProto(sent(t, wire.ReadAnswerToProto(a)))
		same(t, a, got, err)

		page := lease.ListPage{Now: a.Now, NextPageToken: rapid.String().Draw(t, "token")}
		for _, item := range rapid.SliceOfN(answers(), 0, 4).Draw(t, "answers") {
			item.Now, item.Changed = page.Now, false
			page.Answers = append(page.Answers, item)
		}
		gotPage, err := wire.ListPageFromProto(sent(t, wire.ListPageToProto(page)))
		same(t, page, gotPage, err)

		history := lease.HistoryPage{NextPageToken: page.NextPageToken, Entries: []lease.Entry{{
			Index: rapid.Uint64().Draw(t, "index"), Op: lease.Op(rapid.IntRange(1, 4).Draw(t, "op")), Key: a.Record.Key, Owner: a.Record.Owner,
			Epoch: a.Record.Epoch, At: a.Now, Wall: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "wall")).UTC(),
		}}}
		gotHistory, err := wire.HistoryPageFromProto(sent(t, wire.HistoryPageToProto(history)))
		same(t, history, gotHistory, err)
	})
}

func TestRequestsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		acquire := lease.AcquireRequest{
			Key: rapid.StringMatching(`[a-zé/]{1,20}`).Draw(t, "key"), Owner: "o", RequestID: rapid.StringMatching(`[a-z]{0,20}`).Draw(t, "request id"),
			TTL:        time.Duration(rapid.Int64Range(100, 86400000).Draw(t, "ttl")) * time.Millisecond,
			Attributes: rapid.MapOfN(rapid.StringMatching(`[a-z]{1,9}`), rapid.StringMatching(`[a-z]{0,9}`), 1, 5).Draw(t, "attributes"),
		}
		p, err := wire.AcquireToProto(acquire)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.AcquireFromProto(sent(t, p))
		same(t, acquire.Mutation(), m, err)

		renew := lease.RenewRequest{Key: acquire.Key, Owner: "o", Epoch: rapid.Uint64Range(1, lease.MaxEpoch).Draw(t, "epoch"), TTL: acquire.TTL}
		rp, err := wire.RenewToProto(renew)
		if err != nil {
			t.Fatal(err)
		}
		m, err = wire.RenewFromProto(sent(t, rp))
		same(t, renew.Mutation(), m, err)

		release := lease.ReleaseRequest{Key: acquire.Key, Owner: "o", Epoch: renew.Epoch}
		m, err = wire.ReleaseFromProto(sent(t, wire.ReleaseToProto(release)))
		same(t, release.Mutation(), m, err)
		forget := lease.ForgetRequest{Key: release.Key, Owner: release.Owner, Epoch: release.Epoch}
		m, err = wire.ForgetFromProto(sent(t, wire.ForgetToProto(forget)))
		same(t, forget.Mutation(), m, err)
	})
}

func TestReadRequestsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		consistency := lease.Consistency(rapid.IntRange(0, 1).Draw(t, "consistency"))
		get := lease.GetRequest{Key: "k", Consistency: consistency}
		gotGet, err := wire.GetFromProto(sent(t, wire.GetToProto(get)))
		same(t, get, gotGet, err)

		size := rapid.IntRange(1, lease.MaxPageSize).Draw(t, "size")
		list := lease.ListRequest{Prefix: string(rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "prefix")), Selection: lease.Selection(rapid.IntRange(0, 1).Draw(t, "selection")), Consistency: consistency, PageSize: size, PageToken: "t"}
		lp, err := wire.ListToProto(list)
		if err != nil {
			t.Fatal(err)
		}
		gotList, err := wire.ListFromProto(sent(t, lp))
		same(t, list, gotList, err)

		history := lease.HistoryRequest{Key: "k", Consistency: consistency, PageSize: size, PageToken: "t"}
		hp, err := wire.HistoryToProto(history)
		if err != nil {
			t.Fatal(err)
		}
		gotHistory, err := wire.HistoryFromProto(sent(t, hp))
		same(t, history, gotHistory, err)
	})
}

func TestRemainingIsRoundedDownForAHolderAndUpForAReader(t *testing.T) {
	for _, c := range []struct {
		remaining time.Duration
		down, up  int64
	}{
		{0, 0, 0}, {1, 0, 1}, {time.Millisecond - 1, 0, 1}, {time.Millisecond, 1, 1}, {time.Millisecond + 1, 1, 2}, {lease.MaxTTL, 86400000, 86400000},
	} {
		a := lease.Answer{Remaining: c.remaining}
		if got := wire.MutationAnswerToProto(a).GetRemainingMs(); got != c.down {
			t.Errorf("mutation: %v is %d ms, want %d", c.remaining, got, c.down)
		}
		if got := wire.ReadAnswerToProto(a).GetRemainingMs(); got != c.up {
			t.Errorf("read: %v is %d ms, want %d", c.remaining, got, c.up)
		}
		if got := wire.FailureToProto(&lease.HeldError{Remaining: c.remaining}).GetRefusal().GetRemainingMs(); got != c.up {
			t.Errorf("refusal: %v is %d ms, want %d", c.remaining, got, c.up)
		}
		if got := wire.ListPageToProto(lease.ListPage{Answers: []lease.Answer{a}}).GetLeases()[0].GetRemainingMs(); got != c.up {
			t.Errorf("listing: %v is %d ms, want %d", c.remaining, got, c.up)
		}
	}
}

func TestWhatWouldWrapIsRefused(t *testing.T) {
	for _, ttl := range []int64{math.MinInt64, -1, 0, 99, 86400001, math.MaxInt64, math.MaxInt64/1_000_000 + 1, 18446744073710} {
		_, err := wire.AcquireFromProto(&leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: ttl})
		wantInvalid(t, err, "ttl")
		_, err = wire.RenewFromProto(&leasepb.RenewRequest{Key: []byte("k"), Owner: []byte("o"), Epoch: 1, TtlMs: ttl})
		wantInvalid(t, err, "ttl")
	}
	for _, ttl := range []time.Duration{1, time.Second + 1, -1, 1500 * time.Microsecond} {
		_, err := wire.AcquireToProto(lease.AcquireRequest{Key: "k", Owner: "o", TTL: ttl})
		wantInvalid(t, err, "ttl")
		_, err = wire.RenewToProto(lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: ttl})
		wantInvalid(t, err, "ttl")
	}
	_, err := wire.ListToProto(lease.ListRequest{PageSize: 1<<32 + 1})
	wantInvalid(t, err, "page_size")
	_, err = wire.HistoryToProto(lease.HistoryRequest{PageToken: "\xff"})
	wantInvalid(t, err, "page_token")
	_, err = wire.GetFromProto(&leasepb.GetRequest{Key: []byte("k"), Consistency: 7})
	wantInvalid(t, err, "consistency")
	for _, p := range []*leasepb.Answer{
		nil,
		{},
		{Record: &leasepb.Record{LeaseUntilMs: math.MaxInt64}},
		{Record: &leasepb.Record{}, NowMs: math.MinInt64},
		{Record: &leasepb.Record{}, RemainingMs: -1},
		{Record: &leasepb.Record{}, RemainingMs: math.MaxInt64},
	} {
		if a, err := wire.AnswerFromProto(p); err == nil {
			t.Errorf("%v came out as %v", p, a)
		}
	}
}

func TestAttributesThatAMapCannotHoldAreRefused(t *testing.T) {
	p := &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 1000, Attributes: []*leasepb.Attribute{{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("a"), Value: []byte("2")}}}
	_, err := wire.AcquireFromProto(p)
	wantInvalid(t, err, "attributes")
	p.Attributes = make([]*leasepb.Attribute, 10_000)
	_, err = wire.AcquireFromProto(p)
	wantInvalid(t, err, "attributes")
}

func TestOperationsOfANewerServerAreNoError(t *testing.T) {
	page, err := wire.HistoryPageFromProto(&leasepb.HistoryResponse{Entries: []*leasepb.HistoryEntry{{Op: "evict", Epoch: 3}}})
	if err != nil || page.Entries[0].Op != 0 || page.Entries[0].Epoch != 3 {
		t.Errorf("got %v, %v", page, err)
	}
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *lease.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field || invalid.Limit == "" {
		t.Errorf("got %v, want %s refused", err, field)
	}
}

func FuzzAnswerFromProto(f *testing.F) {
	seed, _ := proto.Marshal(wire.ReadAnswerToProto(lease.Answer{Record: lease.Record{Key: "k", Owner: "o", Epoch: 1}}))
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var p leasepb.Answer
		if proto.Unmarshal(data, &p) != nil {
			return
		}
		a, err := wire.AnswerFromProto(&p)
		if err == nil && a.Remaining < 0 {
			t.Errorf("negative time remains: %v", a)
		}
	})
}

func FuzzAcquireFromProto(f *testing.F) {
	seed, _ := proto.Marshal(&leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 1000})
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var p leasepb.AcquireRequest
		if proto.Unmarshal(data, &p) != nil {
			return
		}
		if m, err := wire.AcquireFromProto(&p); err == nil && m.Validate() != nil {
			t.Errorf("outside the limits: %v", m)
		}
	})
}
