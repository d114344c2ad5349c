package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

func (a *app) benchCommand() *cobra.Command {
	plan := benchPlan{}
	stale := false
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put load on a cluster and show the latencies",
		Long: `Put load on a cluster and show how long its answers take.

Each operation of --op is measured by itself, one after the other, by --clients
callers that each send a request as soon as the one before is answered, over the
connections of one client. acquire takes new keys, renew and get use --keys keys that
were acquired before, release gives back leases that were, each once, and so ends
early when there are no more. handover has --waiters owners wait in line for one key,
each of whom releases it as soon as it is granted and waits again; counted are grants,
and timed from the release to the next owner's knowing of its grant.

The keys of a run begin with a prefix of its own. Keys are for ever: use a cluster
that you can throw away.`,
		Example: `  leasenode bench --op acquire,renew --clients 64 --duration 10s
  leasenode bench --op handover --waiters 1000
  leasenode bench --op get --stale --count 100000 -o json`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&plan.ops, "op", benchOps[:4], "what to measure: a list of acquire, renew, release, get, handover")
	flags.IntVar(&plan.clients, "clients", 32, "how many callers at a time")
	flags.IntVar(&plan.waiters, "waiters", 64, "how many wait for the one key of handover")
	flags.DurationVar(&plan.duration, "duration", 5*time.Second, "how long to measure each operation")
	flags.IntVar(&plan.count, "count", 0, "how many requests to measure for each operation, instead of --duration")
	flags.IntVar(&plan.keys, "keys", 1000, "how many keys to acquire beforehand; for release at least --count")
	flags.DurationVar(&plan.ttl, "ttl", 5*time.Minute, "the ttl to ask for; longer than a run, so that no lease ends in it")
	flags.BoolVar(&stale, "stale", false, "let get take what the asked node has, however old")
	cmd.RunE = a.action(func(ctx context.Context, _ []string) error {
		if cmd.Flags().Changed("duration") && cmd.Flags().Changed("count") {
			return usagef("--duration and --count are both given: an operation is measured for the one or the other")
		}
		plan.timeout = a.timeout
		if stale {
			plan.consistency = lease.Stale
		}
		if err := plan.validate(); err != nil {
			return err
		}
		return a.bench(ctx, plan)
	})
	return cmd
}

// benchOps are the operations; by default all but the last are measured.
var benchOps = []string{"acquire", "renew", "release", "get", "handover"}

// completeOps completes the last of the operations in a list.
func completeOps(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	given := typed[:strings.LastIndex(typed, ",")+1]
	var lists []string
	for _, op := range benchOps {
		if !slices.Contains(strings.Split(given, ","), op) {
			lists = append(lists, given+op)
		}
	}
	return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// benchPlan is what a bench is asked for.
type benchPlan struct {
	ops         []string
	clients     int
	duration    time.Duration
	count       int // 0 for as many as there is time for
	keys        int
	waiters     int
	ttl         time.Duration
	consistency lease.Consistency
	timeout     time.Duration // of a request
}

const maxBenchClients, maxBenchKeys = 2048, 1_000_000

func (p *benchPlan) validate() error {
	for _, op := range p.ops {
		if !slices.Contains(benchOps, op) {
			return usagef("--op has %q: it must be a list of %s", op, strings.Join(benchOps, ", "))
		}
	}
	switch {
	case p.clients < 1 || p.clients > maxBenchClients:
		return usagef("--clients is %d: it must be 1 to %d", p.clients, maxBenchClients)
	case p.waiters < 1 || p.waiters > lease.MaxWaitersPerKey:
		return usagef("--waiters is %d: it must be 1 to %d", p.waiters, lease.MaxWaitersPerKey)
	case p.keys < 1 || p.keys > maxBenchKeys:
		return usagef("--keys is %d: it must be 1 to %d", p.keys, maxBenchKeys)
	case p.count < 0:
		return usagef("--count is %d: it cannot be negative", p.count)
	case p.duration <= 0:
		return usagef("--duration is %v: it must be longer than 0", p.duration)
	}
	if p.count > 0 {
		p.duration = 0
	}
	return lease.AcquireRequest{Key: "k", Owner: benchOwner, TTL: p.ttl}.Mutation().Validate()
}

type benchJSON struct {
	Prefix  string            `json:"prefix"`
	Clients int               `json:"clients"`
	Results []benchResultJSON `json:"results"`
}

type benchResultJSON struct {
	Op                  string         `json:"op"`
	Operations          uint64         `json:"operations"`
	Seconds             float64        `json:"seconds"`
	OperationsPerSecond float64        `json:"operations_per_second"`
	P50MS               float64        `json:"p50_ms"`
	P95MS               float64        `json:"p95_ms"`
	P99MS               float64        `json:"p99_ms"`
	MaxMS               float64        `json:"max_ms"`
	Errors              map[string]int `json:"errors"`
}

// bench runs the plan and shows what was measured, as far as it came.
func (a *app) bench(ctx context.Context, plan benchPlan) error {
	return a.withCluster(func(c cluster) error {
		b := newBench(c, plan)
		result := benchJSON{Prefix: b.prefix, Clients: plan.clients, Results: []benchResultJSON{}}
		if len(plan.ops) == 1 && plan.ops[0] == "handover" {
			result.Clients = plan.waiters
		}
		var failure error
		for _, op := range plan.ops {
			fmt.Fprintf(a.stderr, "measuring %s ...\n", op)
			m, err := b.measure(ctx, op)
			if err != nil {
				failure = fmt.Errorf("prepare to measure %s: %w", op, err)
				break
			}
			result.Results = append(result.Results, m.result(op))
			if m.firstError != nil {
				fmt.Fprintf(a.stderr, "the first error of %s: %v\n", op, m.firstError)
			}
			if m.latencies.count == 0 && m.firstError != nil {
				failure = fmt.Errorf("no %s was answered: %w", op, m.firstError)
				break
			}
		}
		if failure != nil && len(result.Results) == 0 {
			return failure
		}
		if err := a.show(result, func(w io.Writer) { tellBench(w, result) }); err != nil {
			return err
		}
		return failure
	})
}

func (m *measurement) result(op string) benchResultJSON {
	seconds := m.elapsed.Seconds()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	r := benchResultJSON{
		Op: op, Operations: m.latencies.count, Seconds: seconds, Errors: m.errors,
		P50MS: ms(m.latencies.quantile(0.50)), P95MS: ms(m.latencies.quantile(0.95)),
		P99MS: ms(m.latencies.quantile(0.99)), MaxMS: ms(m.latencies.max),
	}
	if seconds > 0 {
		r.OperationsPerSecond = float64(m.latencies.count) / seconds
	}
	return r
}

func tellBench(w io.Writer, result benchJSON) {
	rows := [][]string{{"OPERATION", "COUNT", "PER SECOND", "P50", "P95", "P99", "MAX", "ERRORS"}}
	ms := func(v float64) string { return fmt.Sprintf("%.2f ms", v) }
	for _, r := range result.Results {
		errors := 0
		for _, n := range r.Errors {
			errors += n
		}
		rows = append(rows, []string{
			r.Op, strconv.FormatUint(r.Operations, 10), fmt.Sprintf("%.0f", r.OperationsPerSecond),
			ms(r.P50MS), ms(r.P95MS), ms(r.P99MS), ms(r.MaxMS), strconv.Itoa(errors),
		})
	}
	columns(w, rows)
	fmt.Fprintf(w, "\n%d clients; keys begin with %s\n", result.Clients, result.Prefix)
}
