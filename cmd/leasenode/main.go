// Command leasenode is the one program of leasenode: the server, a cluster of
// real server processes on one machine, and the client commands.
//
//	leasenode dev                                    three nodes on this machine
//	leasenode acquire orders/7 --owner worker-1      become the owner of a key
//	leasenode renew orders/7 --owner worker-1 --epoch 1
//	leasenode status                                 who leads, who is healthy
//
// The flags that say where the cluster is and how to print, and those of servers, can also
// be given as an environment variable: --data-dir as LEASENODE_DATA_DIR. A flag on the
// command line wins.
//
// Scripts can rely on the exit code (0 done, 1 failed, 2 usage or an argument
// outside a limit, 3 held by someone, 4 lost or fenced, 5 unavailable or outcome
// unknown) and on the shapes that -o json prints, errors included. Messages and
// tables are for people and may change.
//
// Start reading at run. Each family of commands has a file; all of them see the
// cluster through the interface in connect.go, so that a test can put its own
// there, and write through output.go and errors.go. The server itself is
// internal/node, and this package only tells it what to do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a clean stop; the second finds the system's own
	// behaviour restored and ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, process{
		name:   os.Args[0],
		args:   os.Args[1:],
		env:    os.Environ(),
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		dial:   dialCluster,
	}))
}
