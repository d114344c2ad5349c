package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/leasenode/leasenode/bench/proc"
)

// zooKeeperJar is where the system's package has it; its manifest names all it needs.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

// ErrNotInstalled says that a system that is not part of the benchmark is not there.
var ErrNotInstalled = errors.New("not installed")

// StartZooKeeper starts an ensemble of three, and returns when it is ready;
// [ErrNotInstalled] if there is no Java or no ZooKeeper from the system's packages.
func StartZooKeeper(ctx context.Context, home Home) (*Cluster, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("start ZooKeeper: java: %w", ErrNotInstalled)
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %s: %w", zooKeeperJar, ErrNotInstalled)
	}
	places, err := home.members("zookeeper", members)
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: "ZooKeeper", probe: probeZooKeeper}
	for i, m := range places {
		if err := writeEnsemble(m, i+1, places); err != nil {
			return nil, fmt.Errorf("start ZooKeeper: %w", err)
		}
		c.addrs = append(c.addrs, m.client)
		c.commands = append(c.commands, proc.Command{
			Name: "ZooKeeper " + m.name, Path: java, Dir: m.dir,
			Args: []string{"-cp", m.dir + ":" + zooKeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(m.dir, "zoo.cfg")},
		})
	}
	if c, err = c.start(ctx); err != nil {
		return nil, err
	}
	text, err := askZooKeeper(ctx, c.addrs[0])
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.version = zooKeeperVersion(text)
	return c, nil
}

// writeEnsemble writes what member number id has to be told: the values of the file that
// comes with ZooKeeper, no limit on connections from one machine, and no web server.
func writeEnsemble(m member, id int, places []member) error {
	data := filepath.Join(m.dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	var config strings.Builder
	_, port, err := net.SplitHostPort(m.client)
	if err != nil {
		return err
	}
	fmt.Fprintf(&config, "tickTime=2000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0\nadmin.enableServer=false\n")
	fmt.Fprintf(&config, "dataDir=%s\nclientPort=%s\nclientPortAddress=%s\n", data, port, proc.Loopback)
	for i, other := range places {
		_, election, err := net.SplitHostPort(other.election)
		if err != nil {
			return err
		}
		fmt.Fprintf(&config, "server.%d=%s:%s\n", i+1, other.peer, election)
	}
	const logging = "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n" +
		"log4j.appender.out.layout=org.apache.log4j.PatternLayout\nlog4j.appender.out.layout.ConversionPattern=%d %p %c %m%n\n"
	for name, text := range map[string]string{"zoo.cfg": config.String(), "data/myid": fmt.Sprintln(id), "log4j.properties": logging} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func probeZooKeeper(ctx context.Context, addr string) (role, error) {
	text, err := askZooKeeper(ctx, addr)
	switch {
	case err != nil:
		return follows, err
	case strings.Contains(text, "Mode: leader"):
		return leads, nil
	case strings.Contains(text, "Mode: follower"):
		return follows, nil
	default:
		return follows, fmt.Errorf("it says: %q", strings.TrimSpace(text))
	}
}

// askZooKeeper sends the four-letter word that is allowed by default.
func askZooKeeper(ctx context.Context, addr string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	return string(text), err
}

// zooKeeperVersion finds the version in the answer to srvr.
func zooKeeperVersion(text string) string {
	if match := regexp.MustCompile(`version: ([0-9.]+)`).FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return "unknown"
}
