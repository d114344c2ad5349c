// Package report makes a page of a run and its verdict: report.html, which needs nothing
// but itself, and beside it porcupine's picture of every key without a right order.
//
// The timeline is drawn from what holders believed and from what the store answered and
// kept, merged; single operations are not on it, however many there were. The store
// tells the cluster clock, which is not the harness's: its instants are placed by the
// answers around them, so they are right within the time that an answer took.
package report
