package cluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasenode/leasenode/jepsen-like/cluster"
)

// binaries are the programs under test, built once.
var binaries cluster.Binaries

// harnessEnv has this test program run a cluster in the folder that it names until it is
// killed, with the binary that its first argument names.
const harnessEnv = "CLUSTER_TEST_HARNESS"

func TestMain(m *testing.M) {
	if os.Getenv(spinEnv) != "" {
		spin()
	}
	if dir := os.Getenv(harnessEnv); dir != "" {
		runHarness(dir, os.Args[1], cluster.Program(os.Args[2]))
	}
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		panic(err)
	}
	if binaries, err = cluster.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// runHarness runs a cluster, says the processes of its nodes, and never returns.
func runHarness(dir, binary string, program cluster.Program) {
	c, err := cluster.Open(context.Background(), cluster.Config{Dir: dir, Nodes: 3, Program: program, Binary: binary})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := range 3 {
		pid, _ := c.PID(i)
		fmt.Println(pid)
	}
	if err := c.Stop(0); err != nil { // what stands still has to end too
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("running")
	for {
		time.Sleep(time.Hour)
	}
}
