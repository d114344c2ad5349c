package api_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// FuzzBundle sends whatever can be decoded as a message of calls: each call gets one
// reply, which is a response or a failure, and the stream goes on.
func FuzzBundle(f *testing.F) {
	key := []byte("k")
	request, _ := proto.Marshal(&leasepb.RenewRequest{Key: key, Owner: key, Epoch: 1, TtlMs: 1000})
	for _, seed := range []*leasepb.Calls{
		{},
		{Calls: []*leasepb.Call{{Id: 1, Method: leasepb.Method_METHOD_RENEW, Request: request}, {Id: 1, Cancel: true}, {Id: 1, Method: leasepb.Method_METHOD_GET, Request: request}}},
		{Calls: []*leasepb.Call{{Method: leasepb.Method_METHOD_ACQUIRE, TimeoutMs: -1, Request: request}, {Method: 99, TimeoutMs: 1}, {Id: 1<<64 - 1, Method: leasepb.Method_METHOD_RELEASE, Request: []byte{0xff}}}},
	} {
		data, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var message leasepb.Calls
		if proto.Unmarshal(data, &message) != nil {
			t.Skip()
		}
		n := startLeader(t)
		n.locked(func() {
			n.wait = func(context.Context, lease.Poll) (lease.Answer, error) { return lease.Answer{}, lease.ErrUnavailable }
			n.handOver = func(context.Context, lease.Mutation, string) (lease.Answer, error) {
				return lease.Answer{}, lease.ErrUnavailable
			}
		})
		if err := answersEach(openBundle(t, n), &message); err != nil {
			t.Error(err)
		}
	})
}

// answersEach sends message and one more call, and returns what is wrong with the replies.
func answersEach(stream leasepb.BundleService_BundleClient, message *leasepb.Calls) error {
	more := &leasepb.Call{Id: 12345, Method: leasepb.Method_METHOD_GET}
	for _, m := range []*leasepb.Calls{message, {Calls: []*leasepb.Call{more}}} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	open, left := map[uint64]int{more.GetId(): 1}, 1
	for _, call := range message.GetCalls() {
		if !call.GetCancel() {
			open[call.GetId()]++
			left++
		}
	}
	for left > 0 {
		got, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("%d calls are not answered: %w", left, err)
		}
		for _, reply := range got.GetReplies() {
			open[reply.GetId()]--
			left--
			if (len(reply.GetStatus()) > 0) == (len(reply.GetResponse()) > 0) {
				return fmt.Errorf("neither a response nor a failure, or both: %v", reply)
			}
		}
	}
	maps.DeleteFunc(open, func(_ uint64, n int) bool { return n == 0 })
	if len(open) > 0 {
		return fmt.Errorf("calls without a reply, or with too many, by id: %v", open)
	}
	return nil
}
