package report

import (
	"fmt"
	"strings"
)

// Document is all that a run has to say.
type Document struct {
	// Facts are the machine, the versions, the commands: a name and a text each.
	Facts []Fact
	// Goals are the rows that are held against goals, Costs what a mutation costs,
	// Reference the rows with Redis in them.
	Goals, Costs, Reference []Row
	// Faults are what went wrong: a figure may be missing or mean less for it.
	Faults []string
}

// Fact is one thing to know of a run.
type Fact struct{ Name, Text string }

// Markdown returns the document.
func (d Document) Markdown() string {
	var b strings.Builder
	b.WriteString("# Beside etcd and ZooKeeper\n\n")
	b.WriteString("Written by `make bench-peers`: every figure is of one run, in which the systems took\n")
	b.WriteString("turns. Absolute figures are about the machine; the ratios are what counts.\n\n## The run\n\n")
	writeTable(&b, []string{"", ""}, factLines(d.Facts))
	b.WriteString("\n## Goals\n\n")
	b.WriteString("A figure is the median of the rounds, with the smallest and the largest; a ratio is\n")
	b.WriteString("leasenode's median by the other's, with the smallest and the largest of one round.\n")
	b.WriteString("Rows with (wal) are of another cluster of leasenode, which keeps its log in files of its\n")
	b.WriteString("own (--log-store wal) in place of bbolt.\n\n")
	writeTable(&b, []string{"work", "etcd", "ZooKeeper", "leasenode", "ratio", "goal", "reached?"}, goalLines(d.Goals))
	if len(d.Costs) > 0 {
		b.WriteString("\n## What a mutation costs\n\nCPU time, user and system, and bytes written to storage, of each process, as the system counts\nthem: where a little is written into a large folio of the page cache, recent kernels count all of it,\nwhich makes far too much of (wal); docs/log-stores.md has what reaches the device.\n\n")
		writeTable(&b, []string{"cost", "etcd", "ZooKeeper", "leasenode", "ratio"}, costLines(d.Costs))
	}
	if len(d.Reference) > 0 {
		b.WriteString("\n## Redis, a fast reference without consensus, never counted\n\n")
		b.WriteString("One process, SET NX PX, appendfsync always: what it acknowledged is lost with its disk.\n\n")
		writeTable(&b, []string{"work", "Redis", "leasenode"}, referenceLines(d.Reference))
	}
	if len(d.Faults) > 0 {
		b.WriteString("\n## What went wrong\n\n")
		for _, fault := range d.Faults {
			fmt.Fprintf(&b, "- %s\n", cell(fault))
		}
	}
	return b.String()
}

func factLines(facts []Fact) (lines [][]string) {
	for _, f := range facts {
		lines = append(lines, []string{f.Name, f.Text})
	}
	return lines
}

func goalLines(rows []Row) (lines [][]string) {
	for _, r := range rows {
		lines = append(lines, []string{r.Work, r.figure(Etcd), r.figure(ZooKeeper), r.figure(Leasenode), r.ratios(), r.goals(), r.verdicts()})
	}
	return lines
}

func costLines(rows []Row) (lines [][]string) {
	for _, r := range rows {
		lines = append(lines, []string{r.Work, r.figure(Etcd), r.figure(ZooKeeper), r.figure(Leasenode), r.ratios()})
	}
	return lines
}

func referenceLines(rows []Row) (lines [][]string) {
	for _, r := range rows {
		lines = append(lines, []string{r.Work, r.figure(Redis), r.figure(Leasenode)})
	}
	return lines
}

func writeTable(b *strings.Builder, head []string, lines [][]string) {
	writeLine(b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, line := range lines {
		writeLine(b, line)
	}
}

func writeLine(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for _, text := range cells {
		b.WriteString(" " + cell(text) + " |")
	}
	b.WriteString("\n")
}

// cell returns text as it can stand in a table.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`).Replace(text)
}
