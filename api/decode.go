package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// By itself gRPC answers a request that it cannot decode before any code of ours has
// run: text that is no UTF-8 with INTERNAL, and what is too large without a reason
// that a client could rely on. So here a request is decoded into an [envelope], which
// takes the failure in, and the failure then takes the way of every other.

// maxReadBytes is the size up to which a request is read, so that it can be refused
// with a reason. gRPC itself cuts off what is larger, with RESOURCE_EXHAUSTED.
const maxReadBytes = 2 * wire.MaxRequestBytes

// envelope is a request on its way from the codec to the handler.
type envelope struct {
	request any
	// err is why request was not decoded; nil if it was.
	err error
}

// codec is gRPC's own for protobuf, except for envelopes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	if m, ok := message.(*packed); ok {
		return m.buffers(), nil
	}
	return c.CodecV2.Marshal(message)
}

// Unmarshal implements encoding.CodecV2. It never fails for an envelope.
func (c codec) Unmarshal(data mem.BufferSlice, into any) error {
	e, ok := into.(*envelope)
	if !ok {
		return c.CodecV2.Unmarshal(data, into)
	}
	if data.Len() > wire.MaxRequestBytes {
		e.err = wire.ErrRequestTooLarge()
		return nil
	}
	if err := c.CodecV2.Unmarshal(data, e.request); err != nil {
		e.err = &lease.InvalidError{Field: "request", Problem: fmt.Sprintf("can not be decoded (%v)", err), Limit: "a message of leasenode.v1, with valid UTF-8 in every string"}
	}
	return nil
}

// register registers service with methods that take envelopes.
func register(server *grpc.Server, desc *grpc.ServiceDesc, service any) {
	server.RegisterService(enveloped(desc), service)
}

// enveloped returns desc with methods that take envelopes.
func enveloped(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	ours := *desc
	ours.Methods = slices.Clone(desc.Methods)
	for i := range ours.Methods {
		m := &ours.Methods[i]
		m.Handler = opening(m.Handler, "/"+desc.ServiceName+"/"+m.MethodName)
	}
	return &ours
}

// opening has the handler of method get its request out of an envelope. A request
// that was not decoded goes through the interceptors all the same: it is counted,
// and refused with a reason.
func opening(handle grpc.MethodHandler, method string) grpc.MethodHandler {
	return func(service any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		var e envelope
		answer, err := handle(service, ctx, func(request any) error {
			e.request = request
			if err := decode(&e); err != nil {
				return err
			}
			return e.err
		}, intercept)
		if e.err == nil {
			return answer, err
		}
		info := &grpc.UnaryServerInfo{Server: service, FullMethod: method}
		return intercept(ctx, nil, info, func(context.Context, any) (any, error) { return nil, e.err })
	}
}

// openStream has the request of a stream of ours be read out of an envelope.
func openStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if strings.HasPrefix(info.FullMethod, ourServices) {
		stream = openingStream{stream}
	}
	return handle(service, stream)
}

type openingStream struct{ grpc.ServerStream }

// RecvMsg implements grpc.ServerStream.
func (s openingStream) RecvMsg(request any) error {
	e := envelope{request: request}
	if err := s.ServerStream.RecvMsg(&e); err != nil {
		return err
	}
	return e.err
}
