package lease_test

import (
	"strings"
	"testing"

	"github.com/leasenode/leasenode/lease"
)

func TestPositionsComeBack(t *testing.T) {
	for _, p := range []lease.Position{{ClusterID: "c"}, {ClusterID: "c:1", Index: 42}, {ClusterID: strings.Repeat("f", 64), Index: 1<<64 - 1}} {
		if got, err := lease.ParsePosition(p.String()); err != nil || got != p {
			t.Errorf("%v became %v, %v", p, got, err)
		}
	}
	for _, s := range []string{"", ":", ":1", "c", "c:", "c:-1", "c:1x", "c:18446744073709551616"} {
		if _, err := lease.ParsePosition(s); lease.CodeOf(err) != lease.CodeInvalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestEventKindsComeBack(t *testing.T) {
	for k := lease.Acquired; k <= lease.Expired; k++ {
		if got, ok := lease.ParseEventKind(k.String()); !ok || got != k {
			t.Errorf("%v became %v", k, got)
		}
	}
	for _, word := range []string{"", "acquire", "event(0)", "event(6)"} {
		if _, ok := lease.ParseEventKind(word); ok {
			t.Errorf("%q is an event", word)
		}
	}
	for op, want := range map[lease.Op]lease.EventKind{lease.OpAcquire: lease.Acquired, lease.OpRenew: lease.Renewed, lease.OpRelease: lease.Released, lease.OpForget: lease.Forgotten} {
		if got := lease.EventOf(op); got != want {
			t.Errorf("%v is %v", op, got)
		}
	}
}

func TestWatchRequestsAreChecked(t *testing.T) {
	for _, r := range []lease.WatchRequest{{}, {Key: "k"}, {Prefix: "p\xff"}} {
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, r := range []lease.WatchRequest{{Key: "\x00"}, {Key: "k", Prefix: "k"}, {Prefix: strings.Repeat("p", lease.MaxKeyBytes+1)}} {
		if lease.CodeOf(r.Validate()) != lease.CodeInvalid {
			t.Errorf("%+v is accepted", r)
		}
	}
}
