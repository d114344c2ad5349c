package bundle

import (
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
)

// methodOf returns what the call of a method with that request is in a bundle; false if
// it is not one for a bundle.
func methodOf(name string, request any) (leasepb.Method, proto.Message, bool) {
	m, ok := request.(proto.Message)
	if !ok || proto.Size(m) > wire.MaxBundledBytes {
		return 0, nil, false
	}
	switch name {
	case leasepb.LeaseService_Acquire_FullMethodName:
		r, ok := request.(*leasepb.AcquireRequest)
		return leasepb.Method_METHOD_ACQUIRE, m, ok && r.GetWaitMs() == 0
	case leasepb.LeaseService_Renew_FullMethodName:
		return leasepb.Method_METHOD_RENEW, m, true
	case leasepb.LeaseService_Release_FullMethodName:
		return leasepb.Method_METHOD_RELEASE, m, true
	case leasepb.LeaseService_Forget_FullMethodName:
		return leasepb.Method_METHOD_FORGET, m, true
	case leasepb.LeaseService_Get_FullMethodName:
		return leasepb.Method_METHOD_GET, m, true
	}
	return 0, nil, false
}
