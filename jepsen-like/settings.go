package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// settings are the flags.
type settings struct {
	nodes     int
	time      time.Duration
	faults    []string
	seed      uint64
	intensity float64
	out       string

	clients, holders, keys int

	workloadCommand   string
	workloadKeys      int
	workloadInstances int

	endpoints []string
	node      string
	logStore  string
	leasenode string
	chaosnode string
	mount     bool
	broken    string
	schedule  string
	shrink    time.Duration
	bound     time.Duration
	pause     time.Duration

	printSchedule bool
	judge         string
	table         bool
}

// The node programs.
const (
	realNode  = "leasenode"
	chaosNode = "chaosnode"
)

// The ways in which nodes keep their logs.
const (
	boltLogs  = "bolt"
	walLogs   = "wal"
	mixedLogs = "mixed"
)

const (
	maxNodes     = 9
	maxClients   = 200
	maxInstances = 50
	maxKeys      = 1000
)

func (s *settings) define(flags *pflag.FlagSet) {
	flags.IntVar(&s.nodes, "nodes", 3, "how many nodes to start: 1, 3, 5, 7 or 9")
	flags.DurationVar(&s.time, "time", defaultTime, "how long the run lasts; it is longer if the cluster takes long to recover")
	flags.StringSliceVar(&s.faults, "faults", []string{"all"}, "what to do to the cluster: groups or kinds, all or none")
	flags.Uint64Var(&s.seed, "seed", 0, "what the run is made from; a random one if it is 0")
	flags.Float64Var(&s.intensity, "intensity", 1.5, "about how many faults there are at a time")
	flags.StringVar(&s.out, "out", "", "the folder for the run, which must not have anything in it; a new one among temporary files if empty")
	flags.IntVar(&s.clients, "clients", 5, "how many clients ask for anything at any time; 0 for none")
	flags.DurationVar(&s.pause, "pause", 50*time.Millisecond, "the mean of the pauses between the operations of a client")
	flags.IntVar(&s.holders, "holders", 3, "how many processes hold keys and write to a fenced resource; 0 for none")
	flags.IntVar(&s.keys, "keys", 4, "how many keys the clients contend for at a time")
	flags.StringVar(&s.workloadCommand, "workload-command", "", "a program to judge, in place of the holders: words separated by spaces; see docs/chaos.md")
	flags.IntVar(&s.workloadKeys, "workload-keys", 1, "how many keys the program is started for")
	flags.IntVar(&s.workloadInstances, "workload-instances", 3, "how many instances of the program are started for each key")
	flags.StringSliceVar(&s.endpoints, "endpoints", nil, "client addresses of a running cluster: workload and checks without faults")
	flags.StringVar(&s.node, "node", "", "the node program: leasenode, or chaosnode for the harness's own, which takes faults of clocks and disks and kill-snapshot, too; by default leasenode, unless --faults names such a fault")
	flags.StringVar(&s.logStore, "log-store", mixedLogs, "how the nodes keep their logs: bolt, wal, or mixed for some in each way")
	flags.StringVar(&s.leasenode, "leasenode", "", "the leasenode binary; built from this source if empty")
	flags.StringVar(&s.chaosnode, "chaosnode", "", "the chaosnode binary; built from this source if empty")
	flags.BoolVar(&s.mount, "mount", false, "keep the data of each node on a small disk in memory, so that disk-full can be done to leasenode (Linux, root)")
	flags.StringVar(&s.broken, "broken", "", "break the nodes on purpose: "+strings.Join(brokenNames(), ", "))
	flags.StringVar(&s.schedule, "schedule", "", "a file with the schedule of faults to do, such as schedule.json of a run")
	flags.DurationVar(&s.shrink, "shrink", 0, "how long to look for a smaller schedule that still fails, if the run fails")
	flags.DurationVar(&s.bound, "recovery", 20*time.Second, "how soon after the last fault each node has to serve")
	flags.BoolVar(&s.printSchedule, "print-schedule", false, "print the schedule that the seed gives, and do nothing")
	flags.StringVar(&s.judge, "judge", "", "judge again the run in a folder")
	flags.BoolVar(&s.table, "table", false, "print what the runs in folders had of each fault and each check")
}

// campaign is a run as it was asked for, checked and complete.
type campaign struct {
	settings
	schedule nemesis.Schedule
	left     []nemesis.Kind // of all, what cannot be done to the nodes
	program  []string       // to judge in place of the holders; nil for none
	binary   string         // of the nodes
	repeat   string         // the command line that does this again
}

// resolve checks the settings as a whole and fills in what was left out.
func (s settings) resolve(g given) (campaign, error) {
	c := campaign{settings: s, program: strings.Fields(s.workloadCommand)}
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano() % 1_000_000)
	}
	if len(c.program) > 0 {
		c.holders = c.workloadKeys * c.workloadInstances
	}
	if err := c.validate(g); err != nil {
		return c, err
	}
	if err := c.plan(g); err != nil {
		return c, err
	}
	if c.out == "" {
		c.out = filepath.Join(os.TempDir(), fmt.Sprintf("leasenode-chaos-%d-%s", c.seed, time.Now().Format("20060102-150405")))
	}
	out, err := filepath.Abs(c.out)
	c.out = out
	return c, err
}

func (c *campaign) validate(g given) error {
	if err := c.validateNumbers(); err != nil {
		return err
	}
	switch {
	case c.nodes%2 == 0:
		return usagef("--nodes is %d: it must be odd, since an even number survives no more than one less", c.nodes)
	case c.time < time.Second:
		return usagef("--time is %v: it must be 1s or more", c.time)
	case c.pause < time.Millisecond:
		return usagef("--pause is %v: it must be 1ms or more", c.pause)
	case c.intensity <= 0 || c.intensity > 20:
		return usagef("--intensity is %v: it must be more than 0 and at most 20", c.intensity)
	case c.bound < time.Second:
		return usagef("--recovery is %v: it must be 1s or more", c.bound)
	case c.shrink < 0:
		return usagef("--shrink is %v: it cannot be negative", c.shrink)
	case !slices.Contains([]string{"", realNode, chaosNode}, c.node):
		return usagef("--node is %q: it must be leasenode or chaosnode", c.node)
	case !slices.Contains([]string{boltLogs, walLogs, mixedLogs}, c.logStore):
		return usagef("--log-store is %q: it must be bolt, wal or mixed", c.logStore)
	case c.broken != "" && !slices.Contains(brokenNames(), c.broken):
		return usagef("--broken is %q: it must be one of %s", c.broken, strings.Join(brokenNames(), ", "))
	case c.broken != "" && c.node == realNode:
		return usagef("--broken needs --node chaosnode: leasenode itself cannot be broken on purpose")
	case len(c.program) > 0 && g.flag("holders"):
		return usagef("--holders and --workload-command are both given: the program takes the place of the holders")
	case len(c.program) == 0 && (g.flag("workload-keys") || g.flag("workload-instances")):
		return usagef("--workload-keys and --workload-instances need --workload-command")
	}
	return c.validateAttached(g)
}

// validateNumbers checks what has a least and a most.
func (c *campaign) validateNumbers() error {
	for _, bound := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"nodes", c.nodes, 1, maxNodes},
		{"clients", c.clients, 0, maxClients},
		{"holders", c.holders, 0, maxInstances},
		{"keys", c.keys, 1, maxKeys},
		{"workload-keys", c.workloadKeys, 1, maxInstances},
		{"workload-instances", c.workloadInstances, 1, maxInstances},
	} {
		if bound.value < bound.least || bound.value > bound.most {
			return usagef("--%s is %d: it must be %d to %d", bound.name, bound.value, bound.least, bound.most)
		}
	}
	return nil
}

// validateAttached checks what --endpoints goes with.
func (c *campaign) validateAttached(g given) error {
	if !g.flag("endpoints") {
		return nil
	}
	for _, flag := range []string{"nodes", "node", "log-store", "leasenode", "chaosnode", "mount", "broken", "schedule", "shrink"} {
		if g.flag(flag) {
			return usagef("--endpoints and --%s are both given: no node is started for a cluster that runs", flag)
		}
	}
	if g.flag("faults") && !slices.Equal(c.faults, []string{"none"}) {
		return usagef("--endpoints and --faults are both given: nothing is done to a cluster that runs")
	}
	for _, endpoint := range c.endpoints {
		if host, port, err := net.SplitHostPort(endpoint); err != nil || host == "" || port == "" {
			return usagef("--endpoints has %q: it must be of the form host:port, as in 127.0.0.1:7201", endpoint)
		}
	}
	if len(c.endpoints) == 0 {
		return usagef("--endpoints is empty")
	}
	c.faults, c.nodes = []string{"none"}, len(c.endpoints)
	return nil
}

// logStores are how the nodes keep their logs, in turns.
func (c *campaign) logStores() []string {
	if c.logStore == mixedLogs {
		return []string{boltLogs, walLogs}
	}
	return []string{c.logStore}
}

// makeFolder makes the folder of a run.
func makeFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return usagef("--out %s has something in it: give a new folder", dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return usagef("--out: %v", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("--out: %v", err)
	}
	return nil
}

// faultHelp lists the faults for the help.
func faultHelp() string {
	var text strings.Builder
	var group nemesis.Group
	for _, about := range nemesis.Kinds() {
		if about.Group != group {
			group = about.Group
			fmt.Fprintf(&text, "\n  %s\n", group)
		}
		note := ""
		if about.Explicit {
			note = " (only if it is named)"
		} else if len((&campaign{}).impossible([]nemesis.Kind{about.Kind})) > 0 {
			note = " *"
		}
		fmt.Fprintf(&text, "    %-15s %s%s\n", about.Kind, about.Text, note)
	}
	return text.String()
}
