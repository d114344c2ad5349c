package api_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

func pairs(n int, name, value string) []*leasepb.Attribute {
	var list []*leasepb.Attribute
	for i := range n {
		list = append(list, &leasepb.Attribute{Name: fmt.Append(nil, name, i), Value: []byte(value)})
	}
	return list
}

// acquires are requests on both sides of every limit; field is empty for those that
// are within.
var acquires = map[string]struct {
	field string
	edit  func(*leasepb.AcquireRequest)
}{
	"plain":                {"", func(*leasepb.AcquireRequest) {}},
	"key of 512 bytes":     {"", func(r *leasepb.AcquireRequest) { r.Key = []byte(strings.Repeat("k", 512)) }},
	"key of 513 bytes":     {"key", func(r *leasepb.AcquireRequest) { r.Key = []byte(strings.Repeat("k", 513)) }},
	"no key":               {"key", func(r *leasepb.AcquireRequest) { r.Key = nil }},
	"NUL":                  {"key", func(r *leasepb.AcquireRequest) { r.Key = []byte("a\x00b") }},
	"control character":    {"key", func(r *leasepb.AcquireRequest) { r.Key = []byte("a\u0085b") }},
	"key is no UTF-8":      {"key", func(r *leasepb.AcquireRequest) { r.Key = []byte("a\xffb") }},
	"owner of 256 bytes":   {"", func(r *leasepb.AcquireRequest) { r.Owner = []byte(strings.Repeat("o", 256)) }},
	"owner of 257 bytes":   {"owner", func(r *leasepb.AcquireRequest) { r.Owner = []byte(strings.Repeat("o", 257)) }},
	"no owner":             {"owner", func(r *leasepb.AcquireRequest) { r.Owner = nil }},
	"blank owner":          {"owner", func(r *leasepb.AcquireRequest) { r.Owner = []byte(" \u2003 ") }},
	"owner is no UTF-8":    {"owner", func(r *leasepb.AcquireRequest) { r.Owner = []byte("\xc3") }},
	"ttl 100":              {"", func(r *leasepb.AcquireRequest) { r.TtlMs = 100 }},
	"ttl 99":               {"ttl", func(r *leasepb.AcquireRequest) { r.TtlMs = 99 }},
	"ttl 0":                {"ttl", func(r *leasepb.AcquireRequest) { r.TtlMs = 0 }},
	"ttl negative":         {"ttl", func(r *leasepb.AcquireRequest) { r.TtlMs = -1 }},
	"ttl 24 h":             {"", func(r *leasepb.AcquireRequest) { r.TtlMs = 86400000 }},
	"ttl 24 h and more":    {"ttl", func(r *leasepb.AcquireRequest) { r.TtlMs = 86400001 }},
	"ttl largest":          {"ttl", func(r *leasepb.AcquireRequest) { r.TtlMs = math.MaxInt64 }},
	"ttl wraps to 1 s":     {"ttl", func(r *leasepb.AcquireRequest) { r.TtlMs = math.MaxInt64/500_000 + 1 }},
	"request id of 64":     {"", func(r *leasepb.AcquireRequest) { r.RequestId = []byte(strings.Repeat("r", 64)) }},
	"request id of 65":     {"request_id", func(r *leasepb.AcquireRequest) { r.RequestId = []byte(strings.Repeat("r", 65)) }},
	"32 attributes":        {"", func(r *leasepb.AcquireRequest) { r.Attributes = pairs(32, "n", "v") }},
	"33 attributes":        {"attributes", func(r *leasepb.AcquireRequest) { r.Attributes = pairs(33, "n", "v") }},
	"10,000 attributes":    {"attributes", func(r *leasepb.AcquireRequest) { r.Attributes = pairs(10_000, "n", "v") }},
	"4096 attribute bytes": {"", func(r *leasepb.AcquireRequest) { r.Attributes = pairs(1, "n", strings.Repeat("v", 4094)) }},
	"4097 attribute bytes": {"attributes", func(r *leasepb.AcquireRequest) { r.Attributes = pairs(1, "n", strings.Repeat("v", 4095)) }},
	"attribute twice":      {"attributes", func(r *leasepb.AcquireRequest) { r.Attributes = append(pairs(1, "n", "v"), pairs(1, "n", "v")...) }},
}

func TestAcquireLimitsOnBothSides(t *testing.T) {
	leader := startLeader(t)
	nobody := start(t, "n9") // knows no leader, and still refuses what is invalid for what it is
	for name, c := range acquires {
		t.Run(name, func(t *testing.T) {
			req := &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 1000}
			c.edit(req)
			before := len(leader.proposed)
			_, err := leader.leases.Acquire(within(t), req)
			if c.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			wantInvalid(t, err, c.field)
			if len(leader.proposed) != before {
				t.Error("it was proposed")
			}
			_, err = nobody.leases.Acquire(within(t), req)
			wantInvalid(t, err, c.field)
		})
	}
}

func TestLimitsOfTheOtherRequests(t *testing.T) {
	n := startLeader(t)
	ctx := within(t)
	key := []byte("k")
	for name, c := range map[string]struct {
		field string
		call  func() error
	}{
		"renew epoch 0": {"epoch", func() error {
			return second(n.leases.Renew(ctx, &leasepb.RenewRequest{Key: key, Owner: key, TtlMs: 1000}))
		}},
		"renew epoch 2^63": {"epoch", func() error {
			return second(n.leases.Renew(ctx, &leasepb.RenewRequest{Key: key, Owner: key, Epoch: 1 << 63, TtlMs: 1000}))
		}},
		"renew largest epoch": {"", func() error {
			return second(n.leases.Renew(ctx, &leasepb.RenewRequest{Key: key, Owner: key, Epoch: 1<<63 - 1, TtlMs: 1000}))
		}},
		"release epoch 0": {"epoch", func() error { return second(n.leases.Release(ctx, &leasepb.ReleaseRequest{Key: key, Owner: key})) }},
		"release to a blank": {"to", func() error {
			return second(n.leases.Release(ctx, &leasepb.ReleaseRequest{Key: key, Owner: key, Epoch: 1, To: []byte(" ")}))
		}},
		"release to 257 bytes": {"to", func() error {
			return second(n.leases.Release(ctx, &leasepb.ReleaseRequest{Key: key, Owner: key, Epoch: 1, To: []byte(strings.Repeat("o", 257))}))
		}},
		"forget blank owner": {"owner", func() error {
			return second(n.leases.Forget(ctx, &leasepb.ForgetRequest{Key: key, Owner: []byte("\t"), Epoch: 1}))
		}},
		"1000 renewals": {"", func() error {
			return second(n.leases.BatchRenew(ctx, &leasepb.BatchRenewRequest{Renewals: many(1000)}))
		}},
		"1001 renewals": {"renewals", func() error {
			return second(n.leases.BatchRenew(ctx, &leasepb.BatchRenewRequest{Renewals: many(1001)}))
		}},
		"get no key":         {"key", func() error { return second(n.leases.Get(ctx, &leasepb.GetRequest{})) }},
		"get consistency":    {"consistency", func() error { return second(n.leases.Get(ctx, &leasepb.GetRequest{Key: key, Consistency: 2})) }},
		"list prefix of 512": {"", func() error { return second(n.leases.List(ctx, &leasepb.ListRequest{Prefix: make([]byte, 512)})) }},
		"list prefix of 513": {"prefix", func() error { return second(n.leases.List(ctx, &leasepb.ListRequest{Prefix: make([]byte, 513)})) }},
		"list 1000":          {"", func() error { return second(n.leases.List(ctx, &leasepb.ListRequest{PageSize: 1000})) }},
		"list 1001":          {"page_size", func() error { return second(n.leases.List(ctx, &leasepb.ListRequest{PageSize: 1001})) }},
		"list -1":            {"page_size", func() error { return second(n.leases.List(ctx, &leasepb.ListRequest{PageSize: -1})) }},
		"list token":         {"page_token", func() error { return second(n.leases.List(ctx, &leasepb.ListRequest{PageToken: "garbage"})) }},
		"history key":        {"key", func() error { return second(n.leases.History(ctx, &leasepb.HistoryRequest{Key: []byte("\x00")})) }},
		"history token":      {"page_token", func() error { return second(n.leases.History(ctx, &leasepb.HistoryRequest{PageToken: "AQ"})) }},
		"history endless token": {"page_token", func() error {
			return second(n.leases.History(ctx, &leasepb.HistoryRequest{PageToken: strings.Repeat("A", 1<<19)}))
		}},
	} {
		err := c.call()
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		t.Run(name, func(t *testing.T) { wantInvalid(t, err, c.field) })
	}
}

func second[T any](_ T, err error) error { return err }

func many(n int) []*leasepb.RenewRequest {
	list := make([]*leasepb.RenewRequest, n)
	for i := range list {
		list[i] = renewal("k")
	}
	return list
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *lease.InvalidError
	if !errors.As(wire.FromCall(err, wire.Mutates), &invalid) || invalid.Field != field || invalid.Limit == "" || status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, want %s refused with its limit", err, field)
	}
}

func TestARequestThatIsTooLargeIsRefusedWithAReason(t *testing.T) {
	n := startLeader(t)
	for _, size := range []int{wire.MaxRequestBytes - 4, wire.MaxRequestBytes - 3, 3 * wire.MaxRequestBytes / 2} {
		raw, err := proto.Marshal(&leasepb.GetRequest{Key: make([]byte, size)})
		if err != nil {
			t.Fatal(err)
		}
		var answer []byte
		err = n.public.Invoke(within(t), leasepb.LeaseService_Get_FullMethodName, raw, &answer, grpc.ForceCodec(rawCodec{}))
		if len(raw) <= wire.MaxRequestBytes {
			wantInvalid(t, err, "key")
			continue
		}
		wantCode(t, err, wire.Mutates, lease.CodeExhausted)
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// rawCodec sends bytes as they are, whatever they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }
func (rawCodec) Name() string                  { return "proto" }

var _ encoding.Codec = rawCodec{}

func TestARequestThatIsNoMessageIsInvalid(t *testing.T) {
	n := startLeader(t)
	for name, raw := range map[string][]byte{
		"page token that is no UTF-8": {0x2a, 1, 0xff}, // field 5 of ListRequest
		"a field without an end":      {0x0a, 0x7f},
		"noise":                       []byte("\xff\xff\xff\xff"),
	} {
		var answer []byte
		err := n.public.Invoke(within(t), leasepb.LeaseService_List_FullMethodName, raw, &answer, grpc.ForceCodec(rawCodec{}))
		t.Run(name, func(t *testing.T) { wantInvalid(t, err, "request") })
	}
	if got := counted(t, n, "LeaseService/List", "INVALID"); got != 3 {
		t.Errorf("%v of 3 are counted", got)
	}
}

func TestACallThatWasGivenUpIsNotProposed(t *testing.T) {
	n := startLeader(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.leases.Renew(ctx, renewal("k"))
	if got := wire.FromCall(err, wire.Mutates); !errors.Is(got, lease.ErrUnavailable) || !errors.Is(got, context.Canceled) {
		t.Errorf("got %v", got)
	}
	if len(n.proposed) != 0 {
		t.Error("it was proposed")
	}
}
