// Package logstores has no code, only benchmarks: of the stores in which a raft log can be
// kept, beside each other, on the disk where the tests' temporary folders are (TMPDIR).
// docs/log-stores.md says what each of them promises, and has the figures.
//
//	go test ./logstores -run '^$' -bench . -count 5
package logstores
