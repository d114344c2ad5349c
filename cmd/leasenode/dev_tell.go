package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/leasenode/leasenode/holder"
)

// say tells the user what happens, on standard error: the result of dev, on
// standard output, is the cluster that runs.
func (s *supervisor) say(format string, args ...any) {
	fmt.Fprintf(s.app.stderr, format+"\n", args...)
}

type devJSON struct {
	Leader string        `json:"leader"`
	Nodes  []devNodeJSON `json:"nodes"`
}

type devNodeJSON struct {
	ID       string `json:"id"`
	APIAddr  string `json:"api_addr"`
	PeerAddr string `json:"peer_addr"`
	PID      int    `json:"pid"`
	Log      string `json:"log"`
	// HTTPAddr is there only if the nodes have one.
	HTTPAddr string `json:"http_addr,omitempty"`
}

func (s *supervisor) tellReady(status holder.Status) error {
	result := devJSON{Leader: status.Leader, Nodes: []devNodeJSON{}}
	head := []string{"  NODE", "ROLE", "CLIENT ADDRESS"}
	if s.plan.httpPort != 0 {
		head = append(head, "HTTP ADDRESS")
	}
	rows := [][]string{append(head, "PROCESS", "LOG")}
	for _, m := range s.members {
		pid := s.current[m.id].pid()
		role := "follower"
		if m.id == status.Leader {
			role = "leader"
		}
		result.Nodes = append(result.Nodes, devNodeJSON{ID: m.id, APIAddr: m.apiAddr, PeerAddr: m.peerAddr, PID: pid, Log: m.log, HTTPAddr: m.httpAddr})
		row := []string{"  " + m.id, role, m.apiAddr}
		if m.httpAddr != "" {
			row = append(row, m.httpAddr)
		}
		rows = append(rows, append(row, strconv.Itoa(pid), m.log))
	}
	return s.app.show(result, func(w io.Writer) {
		fmt.Fprintf(w, "The cluster runs, and %s leads.\n\n", status.Leader)
		columns(w, rows)
		fmt.Fprintf(w, "\nTry, in another terminal:\n")
		for _, words := range s.suggestions() {
			fmt.Fprintf(w, "  %s\n", s.app.commandLine(words...))
		}
		fmt.Fprintf(w, "\nCtrl-C stops the cluster; its leases are kept in %s.\n", s.plan.dir)
	})
}

// suggestions are three commands to try.
func (s *supervisor) suggestions() [][]string {
	commands := [][]string{
		{"acquire", "orders/7", "--owner", "worker-1", "--ttl", "1m"},
		{"list"},
		{"status"},
	}
	endpoints := strings.Join(s.endpoints(), ",")
	if !strings.HasPrefix(endpoints, strings.Split(defaultEndpoints, ",")[0]) {
		for i := range commands {
			commands[i] = append(commands[i], "--endpoints", endpoints)
		}
	}
	return commands
}

// commandLine returns a command of this program as the user can type it.
func (a *app) commandLine(words ...string) string {
	quoted := []string{typedName(a.name)}
	for _, word := range words {
		quoted = append(quoted, shellWord(word))
	}
	return strings.Join(quoted, " ")
}

// goRun matches the places where "go run" puts the programs that it runs: its own
// temporary folder or the build cache.
var goRun = regexp.MustCompile(`[/\\]go-build[0-9]*[/\\]|[/\\][0-9a-f]{64}-d[/\\]`)

// typedName returns what to type to run this program again: the name under which it
// was started, unless that is where "go run" has put it.
func typedName(name string) string {
	if !goRun.MatchString(name) {
		return shellWord(name)
	}
	const here = "./cmd/leasenode"
	if _, err := os.Stat(filepath.Join(here, "main.go")); err == nil {
		return "go run " + here
	}
	return "go run github.com/leasenode/leasenode/cmd/leasenode"
}
