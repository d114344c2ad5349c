package peer

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"

	"github.com/leasenode/leasenode/bench/proc"
	"github.com/leasenode/leasenode/bench/resp"
)

// StartRedis starts one process, with an append-only file that is synced before each
// answer, and returns when it is ready; [ErrNotInstalled] if there is no redis-server.
func StartRedis(ctx context.Context, home Home) (*Cluster, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("start Redis: redis-server: %w", ErrNotInstalled)
	}
	version, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", binary, err)
	}
	places, err := home.members("redis", 1)
	if err != nil {
		return nil, err
	}
	m := places[0]
	host, port, err := net.SplitHostPort(m.client)
	if err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	c := &Cluster{name: "Redis", version: redisVersion(string(version)), probe: probeRedis, addrs: []string{m.client}}
	c.commands = []proc.Command{{
		Name: "redis-server", Path: binary, Dir: m.dir,
		Args: []string{"--bind", host, "--port", port, "--dir", m.dir, "--appendonly", "yes", "--appendfsync", "always", "--save", ""},
	}}
	return c.start(ctx)
}

func probeRedis(ctx context.Context, addr string) (role, error) {
	conn, err := resp.Dial(ctx, addr)
	if err != nil {
		return follows, err
	}
	defer func() { _ = conn.Close() }()
	answer, err := conn.Do(ctx, "PING")
	if err != nil {
		return follows, err
	}
	if answer != "PONG" {
		return follows, fmt.Errorf("it answers PING with %q", answer)
	}
	return leads, nil
}

func redisVersion(text string) string {
	if match := regexp.MustCompile(`v=([0-9.]+)`).FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return "unknown"
}
