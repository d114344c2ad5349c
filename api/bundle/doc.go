// Package bundle makes gRPC calls cheap where one process has many under way: a [Conn]
// sends those that come at the same time as one message of one stream, and takes their
// answers from it (see BundleService in leasepb/lease.proto). A unary gRPC call costs two
// sets of headers, buffers and wake-ups, on a busy leader more than consensus, disk and
// state machine together; in a bundle it costs little more than its bytes.
//
// A Conn is a [grpc.ClientConnInterface] for generated clients, and what a call does and
// how it fails is the same either way: deadlines, cancellation, statuses with their
// details, and the mark of a call that certainly never left (package wire). Calls that
// may take long, or are large, or are of other methods, go as usual; so do all while the
// server knows no bundles.
//
// It promises no order among calls, as gRPC does not. A call in a bundle shares the
// fate of the stream: when that breaks, all that were sent fail together.
//
// The holder and nodes import it; it imports no consensus and no storage. The server's
// side is in package api. Start reading at [Conn.Invoke].
package bundle
