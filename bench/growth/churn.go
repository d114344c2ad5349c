package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasenode/leasenode/bench/growth/observe"
	"github.com/leasenode/leasenode/bench/growth/series"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/holder"
)

// Parts of a run of churn: what of it is left out as warm-up, and how much is compared. The
// log grows until the nodes take their first snapshots of it.
const (
	warmPart   = 0.15
	windowPart = 0.15
)

// The leader has goroutines and connections for the calls that are under way, and another
// may lead at the end than at the beginning.
const (
	leaderGoroutines = 300
	leaderFiles      = 12
)

// bounds are what flat means: at the end of a run no more than at the beginning, but for
// what a garbage collector, a page of a file and a machine that others use, too, make of
// it.
func bounds() []series.Bound {
	all := []series.Bound{
		{Column: "acquire_p50_ms", Title: "acquire, p50, ms", Growth: 0.15},
		{Column: "acquire_p99_ms", Title: "acquire, p99, ms", Growth: 0.30},
		{Column: "renew_p50_ms", Title: "renew, p50, ms", Growth: 0.15},
		{Column: "renew_p99_ms", Title: "renew, p99, ms", Growth: 0.30},
	}
	for node := range nodes {
		n := fmt.Sprintf("n%d", node+1)
		all = append(all,
			series.Bound{Column: n + "_resident_mib", Title: n + ", resident memory, MiB", Growth: 0.10, Slack: 8},
			series.Bound{Column: n + "_heap_mib", Title: n + ", heap, MiB", Growth: 0.10, Slack: 8},
			series.Bound{Column: n + "_goroutines", Title: n + ", goroutines", Growth: 0.10, Slack: leaderGoroutines},
			series.Bound{Column: n + "_files", Title: n + ", open files", Slack: leaderFiles},
			series.Bound{Column: n + "_log_mib", Title: n + ", log, MiB", Growth: 0.10, Slack: 16},
			series.Bound{Column: n + "_state_mib", Title: n + ", state file, MiB", Growth: 0.10, Slack: 16},
			series.Bound{Column: n + "_snapshots_mib", Title: n + ", snapshots, MiB", Growth: 0.10, Slack: 16},
		)
	}
	return all
}

// nodes is how many nodes a cluster has.
const nodes = 3

// churnColumns are the names of what a look at a run of churn has.
func churnColumns() []string {
	all := append([]string{"seconds"}, recorderColumns()...)
	all = append(all, "index", "load_average", "events")
	for node := range nodes {
		all = append(all, observe.Columns(node)...)
	}
	return all
}

// churn works at full rate and looks at the nodes now and then. What it saw is in the
// file however it ends.
func churn(ctx context.Context, c config) error {
	err := c.withSeries(ctx, "churn", churnColumns(), func(cluster *peer.Cluster, out *series.Writer) (err error) {
		client, err := holder.Dial(cluster.Addrs())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, client.Close()) }()
		return c.churnOn(ctx, cluster, client, out)
	})
	if err != nil {
		return err
	}
	return c.tellVerdict(c.file("churn"))
}

func (c config) churnOn(ctx context.Context, cluster *peer.Cluster, client *holder.Client, out *series.Writer) error {
	working, cancel := context.WithTimeout(ctx, c.length)
	defer cancel()
	load := &churnLoad{addrs: cluster.Addrs()}
	var work sync.WaitGroup
	var failed error
	work.Go(func() { failed = load.run(working); cancel() })
	began := time.Now()
	var looked error
	for last := began; peer.Pause(working, c.every); {
		row := append([]float64{time.Since(began).Seconds()}, load.recorder.row(time.Since(last))...)
		last = time.Now()
		if row, looked = lookAt(working, cluster, client, append(row, 0, loadAverage(), float64(load.events.Load()))); looked != nil {
			break
		}
		if looked = out.Add(row); looked != nil {
			break
		}
		c.progress("%6.0f s  %6.0f acquires/s, p50 %.1f ms; %d failures", row[0], row[1], row[2], load.failed())
	}
	cancel()
	work.Wait()
	if working.Err() != nil && errors.Is(looked, working.Err()) {
		looked = nil
	}
	return errors.Join(failed, looked)
}

// lookAt fills in the index, and adds what the nodes look like.
func lookAt(ctx context.Context, cluster *peer.Cluster, client *holder.Client, row []float64) ([]float64, error) {
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range status.Members {
		row[slices.Index(churnColumns(), "index")] = max(row[slices.Index(churnColumns(), "index")], float64(m.AppliedIndex))
	}
	for node := range nodes {
		n, err := observe.Look(ctx, cluster.Data()[node], cluster.Metrics()[node])
		if err != nil {
			return nil, err
		}
		row = append(row, n.Row()...)
	}
	return row, nil
}

// tellVerdict prints what the run says, and fails if something is not flat.
func (c config) tellVerdict(path string) error {
	s, err := series.ReadFile(path)
	if err != nil {
		return err
	}
	verdicts := s.Judge(bounds(), warmPart, windowPart)
	_, _ = fmt.Fprint(c.stdout, verdictTable(verdicts))
	if i := slices.IndexFunc(verdicts, func(v series.Verdict) bool { return !v.Flat }); i >= 0 {
		return fmt.Errorf("%s is not flat, or the run was too short to tell", verdicts[i].Title)
	}
	return nil
}

func verdictTable(verdicts []series.Verdict) string {
	text := "| | early | late | flat? |\n| --- | --- | --- | --- |\n"
	for _, v := range verdicts {
		flat := "yes"
		if !v.Flat {
			flat = "NO"
		}
		text += fmt.Sprintf("| %s | %.4g | %.4g | %s |\n", v.Title, v.Early, v.Late, flat)
	}
	return text
}
