package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

// holding is what a holder process is told.
type holding struct {
	endpoints []string
	name      string
	keys      []string
	resource  string // the folder of the fenced resource
	seed      uint64
}

// ttlOf returns the length of the leases of the key with that number, counted from 0. A
// short one is lost in a failover, a long one outlives it.
func ttlOf(key int) time.Duration {
	switch key % 3 {
	case 0:
		return time.Second
	case 1:
		return 3 * time.Second
	default:
		return 600 * time.Millisecond
	}
}

// holdCommand is the holder process. It ends when its standard input does, so that it
// does not outlive the harness.
func holdCommand(p process, running *bool) *cobra.Command {
	var h holding
	cmd := &cobra.Command{
		Use: "hold", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			*running = true
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() { // ends with the process, as it must: a read cannot be called off
				_, _ = io.Copy(io.Discard, p.stdin)
				cancel()
			}()
			return h.hold(ctx, p.stdout)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&h.endpoints, "endpoints", nil, "")
	flags.StringVar(&h.name, "name", "", "")
	flags.StringArrayVar(&h.keys, "key", nil, "")
	flags.StringVar(&h.resource, "resource", "", "")
	flags.Uint64Var(&h.seed, "seed", 0, "")
	return cmd
}

// hold contends for each key until ctx ends, and writes what it believes to out.
func (h holding) hold(ctx context.Context, out io.Writer) error {
	client, err := holder.Dial(h.endpoints)
	if err != nil {
		return err
	}
	writer := workload.NewWriter(out)
	failures := make([]error, len(h.keys))
	var all sync.WaitGroup
	for i, key := range h.keys {
		all.Go(func() {
			failures[i] = workload.Hold(ctx, workload.HoldOptions{
				Seed: h.seed + uint64(i)<<32, Name: h.name, Key: key, TTL: ttlOf(i), Store: client,
				Now: workload.Monotonic, Resource: workload.NewFileResource(h.resource, workload.Monotonic), Sink: writer,
			})
		})
	}
	all.Wait()
	return errors.Join(errors.Join(failures...), writer.Err(), client.Close())
}
