package wire_test

import (
	"slices"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// goldens are all messages in testdata.
func goldens() []golden {
	return slices.Concat(goldenMutations(), goldenReads(), goldenAnswers(), goldenWatches(), goldenStatuses(), goldenFailures())
}

// must is for what can be written.
func must[M any](m M, err error) M {
	if err != nil {
		panic(err)
	}
	return m
}

func goldenMutations() []golden {
	acquire := lease.Mutation{Op: lease.OpAcquire, Key: "orgs/é", Owner: "host-1", TTL: 90 * time.Second, RequestID: "request-1", Attributes: map[string]string{"addr": "10.0.0.1:80", "version": "1.2"}}
	poll := lease.Poll{Mutation: acquire, Wait: 9500 * time.Millisecond, Waited: 41 * time.Second}
	renew := lease.RenewRequest{Key: "k", Owner: "o", Epoch: lease.MaxEpoch, TTL: lease.MaxTTL}
	release := lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: 300}
	releaseTo := lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: 300, To: "p"}
	forget := lease.ForgetRequest{Key: "k", Owner: "o", Epoch: 1}
	readRelease := func(p *leasepb.ReleaseRequest) (lease.ReleaseRequest, error) {
		m, err := wire.ReleaseFromProto(p)
		return lease.ReleaseRequest{Key: m.Key, Owner: m.Owner, Epoch: m.Epoch, To: string(p.GetTo())}, err
	}
	return []golden{
		message("acquire", must(wire.AcquireToProto(lease.AcquireRequest{Key: acquire.Key, Owner: acquire.Owner, TTL: acquire.TTL, RequestID: acquire.RequestID, Attributes: acquire.Attributes})), wire.PollFromProto, lease.Poll{Mutation: acquire}),
		message("acquire, waiting", must(wire.PollToProto(poll)), wire.PollFromProto, poll),
		message("acquire, bare", must(wire.AcquireToProto(lease.AcquireRequest{Key: "k", Owner: "o", TTL: lease.MinTTL})), wire.PollFromProto, lease.Poll{Mutation: lease.Mutation{Op: lease.OpAcquire, Key: "k", Owner: "o", TTL: lease.MinTTL}}),
		message("renew", must(wire.RenewToProto(renew)), wire.RenewFromProto, renew.Mutation()),
		unread("renew, many", &leasepb.BatchRenewRequest{Renewals: []*leasepb.RenewRequest{must(wire.RenewToProto(renew)), must(wire.RenewToProto(renew))}}),
		message("release", wire.ReleaseToProto(release), readRelease, release),
		message("release to a waiter", wire.ReleaseToProto(releaseTo), readRelease, releaseTo),
		message("forget", wire.ForgetToProto(forget), wire.ForgetFromProto, forget.Mutation()),
	}
}

func goldenReads() []golden {
	get := lease.GetRequest{Key: "k", Consistency: lease.Stale}
	list := lease.ListRequest{Prefix: "orgs/\xc3", Selection: lease.HeldOnly, Consistency: lease.Stale, PageSize: 7, PageToken: "token"}
	history := lease.HistoryRequest{Key: "k", Consistency: lease.Stale, PageSize: 7, PageToken: "token"}
	one := lease.WatchRequest{Key: "k", After: lease.Position{ClusterID: "0123456789abcdef", Index: 1 << 40}}
	many := lease.WatchRequest{Prefix: "orgs/\xc3", Renewals: true, Sync: true, Selection: lease.HeldOnly}
	return []golden{
		message("get", wire.GetToProto(get), wire.GetFromProto, get),
		message("get, linearizable", wire.GetToProto(lease.GetRequest{Key: "k"}), wire.GetFromProto, lease.GetRequest{Key: "k"}),
		message("list", must(wire.ListToProto(list)), wire.ListFromProto, list),
		message("history", must(wire.HistoryToProto(history)), wire.HistoryFromProto, history),
		message("watch a key after a position", wire.WatchToProto(one), wire.WatchFromProto, one),
		message("watch a prefix with a listing", wire.WatchToProto(many), wire.WatchFromProto, many),
		message("watch all", wire.WatchToProto(lease.WatchRequest{}), wire.WatchFromProto, lease.WatchRequest{}),
		unread("status", &leasepb.StatusRequest{}),
		unread("a bundle of calls", &leasepb.Calls{Calls: []*leasepb.Call{
			{Id: 300, Method: leasepb.Method_METHOD_RENEW, TimeoutMs: 2000, Request: []byte("request")},
			{Id: 299, Cancel: true},
		}}),
		unread("a bundle of replies", &leasepb.Replies{Replies: []*leasepb.Reply{{Id: 300, Response: []byte("response")}, {Id: 301, Status: []byte("status")}}}),
	}
}
