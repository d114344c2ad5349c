// Package wire maps the domain of package lease to and from protobuf, for the
// server and for the client: records, answers, pages, requests and failures. It is
// the only place that does, so that the two sides cannot come to differ.
//
// # Numbers
//
// The wire has whole milliseconds, the domain nanoseconds. Instants are rounded
// down. What remains of a lease is rounded down in the answer to a mutation, since
// a holder counts on it, and up in a read and a refusal, so that 0 means free
// there. What does not fit is refused, by both sides, before it could wrap.
//
// # Failures
//
// [StatusOf] turns an error into a status whose ErrorInfo has the error's code as
// its reason; [FromCall] turns the failure of a call back into an error of package
// lease, for errors.Is and errors.As. "Certainly not done" and "not known" are
// kept apart: a mutation that failed without our ErrorInfo is
// [lease.ErrOutcomeUnknown], unless its request certainly never left this process.
// That is only known of a connection made with [DialOptions].
//
// Everything here is a pure function and safe for concurrent use. It imports no
// consensus and no storage, so that a holder can embed it. Start reading at
// [StatusOf].
package wire
