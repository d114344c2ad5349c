package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/leasenode/leasenode/bench/client"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/proc"
	"github.com/leasenode/leasenode/bench/report"
)

// facts are what to know of the run.
func (b *benchmark) facts(syncTimes []time.Duration) []report.Fact {
	m := proc.ThisMachine()
	facts := []report.Fact{
		{Name: "when", Text: b.began.UTC().Format("2006-01-02 15:04 UTC") + ", " + time.Since(b.began).Round(time.Second).String() + " long"},
		{Name: "command", Text: "`" + b.config.command + "`"},
		{Name: "machine", Text: fmt.Sprintf("%s, %d cores, %d MiB of memory, %s", m.CPU, m.Cores, m.MemoryMB, m.Kernel)},
		{Name: "fdatasync of 4 KiB", Text: fmt.Sprintf("p50 %v, p99 %v before the run",
			measure.Quantile(syncTimes, 0.5).Round(time.Microsecond), measure.Quantile(syncTimes, 0.99).Round(time.Microsecond))},
	}
	for _, system := range []string{"leasenode", "etcd", "ZooKeeper", "Redis"} {
		if version := b.versions[system]; version != "" {
			facts = append(facts, report.Fact{Name: system, Text: version})
		}
	}
	facts = append(facts,
		report.Fact{Name: "Go", Text: runtime.Version() + ", of leasenode, etcd and the load generator"},
		report.Fact{Name: "processes", Text: "three of each system on loopback, default tuning, fsync on; the load generator is one more"},
		report.Fact{Name: "clients", Text: fmt.Sprintf(
			"callers share up to %d clients of etcd, each connected to every member, and of leasenode, each using its connection to the leader; "+
				"up to %d sessions of ZooKeeper, spread over the members, the first with the leader; a connection to Redis for each caller; "+
				"up to 64 clients of etcd and of leasenode for waiters", client.Connections, client.MostSessions)},
	)
	if b.plan.Total != 0 {
		facts = append(facts, report.Fact{Name: "measurements", Text: fmt.Sprintf(
			"%d rounds in which the systems take turns; each %v after %v to warm up", b.plan.Rounds, b.plan.Window, b.plan.Warm)})
	}
	return facts
}
