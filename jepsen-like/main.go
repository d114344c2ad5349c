// Command jepsen-like does to a cluster of leasenode what the world will do to it, and
// sees whether the promises hold: real processes on this machine, without root, through
// proxies on every link between them, with faults, clients and holders from a seed.
//
//	go run ./jepsen-like --nodes 3 --time 60s --faults all --seed 7 --out DIR
//
// docs/chaos.md tells how to use it. Exit codes: 0 the promises held, 1 they did not,
// 2 usage, 3 the harness could not do its work.
//
// The parts are packages: nemesis plans and does the faults, workload is the clients and
// holders, cluster the processes and proxies, history what happened, check judges that,
// and report draws it. This package joins them. Start reading at chaos in run.go.
//
// The command is also the holder process that it starts, under a hidden subcommand.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitPass  = 0
	exitFail  = 1
	exitUsage = 2
	exitBroke = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; the second finds the system's own
	// behaviour restored.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, process{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}
