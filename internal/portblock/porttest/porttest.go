// Package porttest gives tests ports of their own, for as long as they run.
package porttest

import (
	"testing"

	"github.com/leasenode/leasenode/internal/portblock"
)

// Claim returns a block that is t's until it ends.
func Claim(t *testing.T) *portblock.Block {
	t.Helper()
	ports, err := portblock.Claim()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ports.Close() })
	return ports
}

// Addrs returns n addresses that are t's until it ends.
func Addrs(t *testing.T, n int) []string {
	t.Helper()
	addrs, err := Claim(t).Addrs(n)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

// Row returns the first of n consecutive ports that are t's until it ends.
func Row(t *testing.T, n int) int {
	t.Helper()
	first, err := Claim(t).Row(n)
	if err != nil {
		t.Fatal(err)
	}
	return first
}
