package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

const (
	// minPackedBytes is the least memory that gRPC tells of when it has done with it.
	minPackedBytes = 1<<10 + 1
	// parcelBytes is what a message on its way takes beside its bytes, about.
	parcelBytes = 512
	// messageBytes is what a message has beside records and events, at most: the position
	// and the leader.
	messageBytes = 1 << 10
	// readBytes is what a client has certainly read some of when it has taken it: a stream
	// has a window of 64 KiB, unless its client wants a larger one.
	readBytes = 128 << 10
)

// packed is a message as it is sent.
type packed struct {
	data   []byte
	parcel *parcel
}

// pack returns the bytes of m in memory of their own: no more of it is kept while it is
// on its way.
func pack(m *leasepb.WatchResponse) ([]byte, error) {
	data, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, max(proto.Size(m), minPackedBytes)), m)
	if err != nil {
		return nil, fmt.Errorf("encode what a watch is told: %w", err)
	}
	return data, nil
}

// buffers returns the message as gRPC takes it, which says when it has done with it.
func (m *packed) buffers() mem.BufferSlice {
	return mem.BufferSlice{mem.NewBuffer(&m.data, m.parcel)}
}

// roomFor returns the room for a message of events or records of n bytes, as the feed
// counts them. On the wire they can take up twice as much.
func roomFor(n int) int { return 2*n + messageBytes + parcelBytes }

// eventsIn is the inverse of roomFor.
func eventsIn(room int) int { return (room - messageBytes - parcelBytes) / 2 }

// take returns room for a message.
func (w *watch) take(ctx context.Context, want size) (*parcel, error) {
	r := request{size: want, standing: unknown, timeout: w.times.Send}
	if w.taken >= readBytes {
		r.standing = reads
	}
	return w.line.take(ctx, r)
}

// send sends data, for which p is, and returns when it is written to the connection: a
// watch has one message on its way, and gRPC has no more to keep for it. A client that
// does not take it in time is given up.
//
// gRPC takes a message at once when the one before it is written, so nothing here waits
// but on p.
func (w *watch) send(ctx context.Context, p *parcel, data []byte) error {
	if err := w.stream.SendMsg(p.send(data)); err != nil {
		p.release()
		return err
	}
	bytes := len(data)
	timer := time.NewTimer(w.times.Send)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-ctx.Done(): // gRPC has dropped what the stream had
		p.release()
	case <-timer.C: // the message is still in the way: p goes on
		return &lease.TooSlowError{Last: w.last()}
	}
	if p.dropped.Load() {
		return &lease.TooSlowError{Last: w.last()}
	}
	w.taken += bytes
	return ctx.Err()
}
