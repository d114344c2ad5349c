// Package check judges a run: every check looks at the whole [history.Run] for one
// promise of the lease, and says what breaks it, where and when.
//
// The checks overlap on purpose. Linearizability would be enough for most that clients
// see, but says only that no order of a key's operations is right; the others say in one
// sentence which promise was broken by whom. A check that could not look, or did not
// find out in time, is unknown, which is not a pass.
//
// It judges what was recorded. A change by somebody who does not record looks like a
// change that nobody can have made.
package check
