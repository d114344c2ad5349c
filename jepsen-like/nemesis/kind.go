package nemesis

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of fault.
type Kind string

// Group is a family of kinds that need the same of a target.
type Group string

// The groups.
const (
	Partition Group = "partition" // between nodes nothing gets through
	Network   Group = "network"   // between nodes things get through badly
	Client    Group = "client"    // between clients and nodes
	Process   Group = "process"   // nodes end and are started again
	Pause     Group = "pause"     // nodes or holders stand still
	Clock     Group = "clock"     // nodes' clocks are wrong
	Disk      Group = "disk"      // nodes' disks are
)

// The kinds. Those that speak of the leader take whoever leads when they begin.
const (
	Isolate       Kind = "isolate"
	IsolateLeader Kind = "isolate-leader"
	Split         Kind = "split"
	Bridge        Kind = "bridge"
	LoseIncoming  Kind = "lose-incoming"
	LoseOutgoing  Kind = "lose-outgoing"
	Ring          Kind = "ring"
	Flapping      Kind = "flapping"

	Latency   Kind = "latency"
	Jitter    Kind = "jitter"
	Bandwidth Kind = "bandwidth"
	Resets    Kind = "resets"
	HalfOpen  Kind = "half-open"

	ClientCut     Kind = "client-cut"
	ClientLatency Kind = "client-latency"
	ClientResets  Kind = "client-resets"

	KillNode     Kind = "kill"
	KillLeader   Kind = "kill-leader"
	KillMajority Kind = "kill-majority"
	KillAll      Kind = "kill-all"
	KillSnapshot Kind = "kill-snapshot"
	SlowRestart  Kind = "slow-restart"
	Restarts     Kind = "restarts"
	Transfer     Kind = "transfer"

	PauseNode     Kind = "pause"
	PauseLeader   Kind = "pause-leader"
	PauseMajority Kind = "pause-majority"
	PauseHolder   Kind = "pause-holder"

	ClockFast   Kind = "clock-fast"
	ClockSlow   Kind = "clock-slow"
	ClockJump   Kind = "clock-jump"
	ClockBeyond Kind = "clock-beyond"

	DiskIsFull     Kind = "disk-full"
	DiskFails      Kind = "disk-failing"
	DiskIsReadOnly Kind = "disk-read-only"
	DiskIsSlow     Kind = "disk-slow"
	DiskIsHanging  Kind = "disk-hanging"
)

// About describes a kind to people.
type About struct {
	Kind  Kind
	Group Group
	// Text says what is done, in half a sentence.
	Text string
	// Explicit kinds belong to no group and are not among all: the product does not
	// promise to survive them, so they have to be named.
	Explicit bool
}

// Kinds returns every kind there is, group by group.
func Kinds() []About {
	return []About{
		{Kind: Isolate, Group: Partition, Text: "a node is cut off from all others"},
		{Kind: IsolateLeader, Group: Partition, Text: "the leader is cut off from all others"},
		{Kind: Split, Group: Partition, Text: "a minority is cut off from the majority"},
		{Kind: Bridge, Group: Partition, Text: "two halves see each other only through one node"},
		{Kind: LoseIncoming, Group: Partition, Text: "a node, half the time the leader, hears nobody, but is heard"},
		{Kind: LoseOutgoing, Group: Partition, Text: "a node, half the time the leader, is heard by nobody, but hears"},
		{Kind: Ring, Group: Partition, Text: "each node sees two neighbours only (from four nodes on)"},
		{Kind: Flapping, Group: Partition, Text: "a node is cut off and comes back, again and again"},

		{Kind: Latency, Group: Network, Text: "all that goes to and from a node, or between all, takes longer"},
		{Kind: Jitter, Group: Network, Text: "it takes longer by chance"},
		{Kind: Bandwidth, Group: Network, Text: "it is slow"},
		{Kind: Resets, Group: Network, Text: "connections are reset again and again"},
		{Kind: HalfOpen, Group: Network, Text: "connections are accepted and silent"},

		{Kind: ClientCut, Group: Client, Text: "clients do not reach a node, or none"},
		{Kind: ClientLatency, Group: Client, Text: "what clients send and hear takes longer"},
		{Kind: ClientResets, Group: Client, Text: "connections of clients are reset again and again"},

		{Kind: KillNode, Group: Process, Text: "kill -9 of a node, which is started again"},
		{Kind: KillLeader, Group: Process, Text: "kill -9 of the leader"},
		{Kind: KillMajority, Group: Process, Text: "kill -9 of a majority at once"},
		{Kind: KillAll, Group: Process, Text: "kill -9 of all nodes at once"},
		{Kind: KillSnapshot, Group: Process, Text: "kill -9 of a node in the middle of its next snapshot, taken or received"},
		{Kind: SlowRestart, Group: Process, Text: "a node stays down for most of the phase"},
		{Kind: Restarts, Group: Process, Text: "a node is killed and started again and again"},
		{Kind: Transfer, Group: Process, Text: "SIGTERM to the leader, which hands over"},

		{Kind: PauseNode, Group: Pause, Text: "SIGSTOP of a node, then SIGCONT"},
		{Kind: PauseLeader, Group: Pause, Text: "SIGSTOP of the leader"},
		{Kind: PauseMajority, Group: Pause, Text: "SIGSTOP of a majority at once"},
		{Kind: PauseHolder, Group: Pause, Text: "SIGSTOP of a holder, most often past its lease"},

		{Kind: ClockFast, Group: Clock, Text: "a node's clock gains 2 to 10 %"},
		{Kind: ClockSlow, Group: Clock, Text: "a node's clock loses 2 to 15 %"},
		{Kind: ClockJump, Group: Clock, Text: "a node's clock jumps ahead by up to 50 ms"},
		{Kind: ClockBeyond, Group: Clock, Text: "all clocks run three times as fast, which breaks the one assumption of the product", Explicit: true},

		{Kind: DiskIsFull, Group: Disk, Text: "a node has no space left"},
		{Kind: DiskFails, Group: Disk, Text: "the next write of a node fails"},
		{Kind: DiskIsReadOnly, Group: Disk, Text: "a node's disk takes no writes"},
		{Kind: DiskIsSlow, Group: Disk, Text: "each write of a node takes longer"},
		{Kind: DiskIsHanging, Group: Disk, Text: "a node's writes do not return"},
	}
}

// GroupOf returns the group of a kind, or "" if there is no such kind.
func GroupOf(kind Kind) Group {
	for _, about := range Kinds() {
		if about.Kind == kind {
			return about.Group
		}
	}
	return ""
}

// Parse returns the kinds that words name: groups, kinds, "all" or "none". It keeps the
// order of [Kinds], and names each kind once.
func Parse(words []string) ([]Kind, error) {
	var kinds []Kind
	for _, word := range words {
		known := word == "none"
		for _, about := range Kinds() {
			named := string(about.Kind) == word
			if named || !about.Explicit && (word == "all" || string(about.Group) == word) {
				kinds, known = append(kinds, about.Kind), true
			}
		}
		if !known {
			return nil, fmt.Errorf("there is no fault %q: name groups (%s), kinds (%s), all or none", word, groupNames(), kindNames())
		}
	}
	if slices.Contains(words, "none") && len(kinds) > 0 {
		return nil, fmt.Errorf("none goes with no other fault: %s", strings.Join(words, ","))
	}
	return inOrder(kinds), nil
}

// Possible returns the kinds that a target can take to which those of the groups
// impossible cannot be done: the clock of a real node, for instance, is the machine's.
func Possible(kinds []Kind, impossible ...Group) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return slices.Contains(impossible, GroupOf(k)) })
}

func inOrder(kinds []Kind) []Kind {
	var ordered []Kind
	for _, about := range Kinds() {
		if slices.Contains(kinds, about.Kind) {
			ordered = append(ordered, about.Kind)
		}
	}
	return ordered
}

func groupNames() string {
	return strings.Join([]string{string(Partition), string(Network), string(Client), string(Process), string(Pause), string(Clock), string(Disk)}, ", ")
}

func kindNames() string {
	var names []string
	for _, about := range Kinds() {
		names = append(names, string(about.Kind))
	}
	return strings.Join(names, ", ")
}
