package sim_test

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // clusters are short-lived, and there is memory
	goleak.VerifyTestMain(m)
}
