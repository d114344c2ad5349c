// Package model says, with porcupine, whether what clients were told about a key can
// have come from a store that follows the rules of the lease, one operation after the
// other, each between its call and its answer.
//
// The model knows about time. An answer tells the cluster clock at which it was
// decided, in whole milliseconds, and the clock does not go back: so the model knows
// whether a lease was over, and allows what rounding needs and no more. An exception
// is a read, which is described as of the leader's clock: that may be ahead of the
// log's, which alone decides, and is lost with the leader. A read bounds the log's
// clock from above, and from below only by a lease that it calls over.
//
// It knows about outcomes that nobody knows. Such an operation takes effect at any
// moment after its call, at an instant that has to be inferred, or never. An operation
// that its client sent several times may have had effect several times.
//
// Operations that were certainly not done, and stale reads, are left out: others judge
// those. The model says nothing of attributes either.
//
// The search is exponential at worst, so it is bounded by time, and guided by what the
// whole history shows: which owner every epoch went to, at which instants the answered
// mutations were decided, which ends of leases no answered operation accounts for. Those
// are consequences of the rules, so they exclude no order that is right.
package model
