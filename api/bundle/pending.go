package bundle

import (
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
)

// pending is a call that is not answered yet.
type pending struct {
	call leasepb.Call
	// left is whether the call was handed to gRPC; its stream's mutex guards it.
	left bool

	// done is closed when it has ended; what follows is not touched after that.
	done  chan struct{}
	reply *leasepb.Reply
	err   error // in place of a reply
}

// result returns what became of a call that has ended.
func (p *pending) result(response proto.Message) error {
	switch {
	case p.err != nil:
		return p.err
	case len(p.reply.GetStatus()) > 0:
		var failed spb.Status
		if err := proto.Unmarshal(p.reply.GetStatus(), &failed); err != nil {
			return status.Errorf(codes.Internal, "decode the status of the answer: %v", err)
		}
		if failed.GetCode() == int32(codes.OK) {
			return status.Error(codes.Internal, "the answer is a failure, but has no code")
		}
		return status.ErrorProto(&failed)
	}
	if err := proto.Unmarshal(p.reply.GetResponse(), response); err != nil {
		return status.Errorf(codes.Internal, "decode the answer: %v", err)
	}
	return nil
}
