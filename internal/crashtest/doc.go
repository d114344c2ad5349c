// Package crashtest has no code, only tests: of clusters of real processes that are
// killed, stopped, wiped and copied, and of what is left of them.
package crashtest
