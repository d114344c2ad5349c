package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// A running dev listens on a port of the loopback for "dev restart". Whoever can
// read the control file may use it: the file has the address and a random token,
// and nobody but its owner can read it. One connection carries one request and one
// reply, both JSON.
type control struct {
	home     *devHome
	nodes    *supervisor
	token    string
	listener net.Listener
	stop     context.CancelFunc
	serving  sync.WaitGroup
}

// controlPoint is the content of the control file.
type controlPoint struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
	Token   string `json:"token"`
}

type controlRequest struct {
	Token   string `json:"token"`
	Restart string `json:"restart"` // the node to bring back
}

type controlReply struct {
	PID   int    `json:"pid"`
	Error string `json:"error,omitempty"`
}

const (
	maxControlBytes    = 4096
	controlReadTimeout = 5 * time.Second
	// A restart stops a node, starts it and waits for it.
	controlTimeout = stopTimeout + restartTimeout + 5*time.Second
)

func openControl(home *devHome, nodes *supervisor) (*control, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for dev restart: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &control{home: home, nodes: nodes, token: rand.Text(), listener: listener, stop: stop}
	point := controlPoint{PID: os.Getpid(), Address: listener.Addr().String(), Token: c.token}
	if err := home.write(controlFile, point); err != nil {
		stop()
		return nil, errors.Join(err, listener.Close())
	}
	c.serving.Go(func() { c.acceptLoop(ctx) })
	return c, nil
}

// close removes the control file, cuts the requests that are being served and
// returns when their goroutines are done.
func (c *control) close() error {
	err := os.Remove(filepath.Join(c.home.dir, controlFile))
	c.stop()
	err = errors.Join(err, c.listener.Close())
	c.serving.Wait()
	if err != nil {
		return fmt.Errorf("stop listening for dev restart: %w", err)
	}
	return nil
}

func (c *control) acceptLoop(ctx context.Context) {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // closed; an error that is not would leave dev without restart only
		}
		c.serving.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			defer func() { _ = conn.Close() }()
			// Whoever asked has gone if the reply cannot be written.
			_ = json.NewEncoder(conn).Encode(c.serve(ctx, conn))
		})
	}
}

func (c *control) serve(ctx context.Context, conn net.Conn) controlReply {
	if err := conn.SetReadDeadline(time.Now().Add(controlReadTimeout)); err != nil {
		return controlReply{Error: err.Error()}
	}
	var request controlRequest
	if err := json.NewDecoder(io.LimitReader(conn, maxControlBytes)).Decode(&request); err != nil {
		return controlReply{Error: "the request cannot be read: " + err.Error()}
	}
	if subtle.ConstantTimeCompare([]byte(request.Token), []byte(c.token)) != 1 {
		return controlReply{Error: "the token is wrong"}
	}
	p, err := c.nodes.restart(ctx, request.Restart)
	if err != nil {
		return controlReply{Error: err.Error()}
	}
	return controlReply{PID: p.pid()}
}

func (a *app) devRestartCommand(plan *devPlan) *cobra.Command {
	return &cobra.Command{
		Use:   "restart NODE...",
		Short: "Have the running dev bring nodes back",
		Long: `Have the "leasenode dev" that runs in --data-dir bring nodes back, and wait until they
are healthy. A node that still runs is stopped cleanly first. Where a majority is down,
name enough of them to have one again: a node without a majority does not get healthy.`,
		Example: `  leasenode dev restart n2
  leasenode dev restart n2 n3
  leasenode dev restart n2 --data-dir /tmp/five`,
		Args: arguments{what: "NODE", min: 1}.check,
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			dir := plan.dir
			if value, ok := lookup(a.env, envName("data-dir")); ok && !cmd.Flags().Changed("data-dir") {
				dir = value
			}
			var ids []string
			for _, node := range layoutDirs(dir) {
				if id := filepath.Base(node); !slices.Contains(given, id) {
					ids = append(ids, id)
				}
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.action(func(ctx context.Context, args []string) error { return a.devRestart(ctx, plan.dir, args) }),
	}
}

// restartedJSON is a node that is back; each has a line of its own.
type restartedJSON struct {
	ID  string `json:"id"`
	PID int    `json:"pid"`
}

// devRestart asks for all nodes at once: none may be able to get healthy without the
// others. It tells about each, in the order of ids, and fails if one did not come back.
func (a *app) devRestart(ctx context.Context, dir string, ids []string) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	replies, faults := make([]controlReply, len(ids)), make([]error, len(ids))
	var asking sync.WaitGroup
	for i, id := range ids {
		asking.Go(func() { replies[i], faults[i] = askControl(ctx, dir, id) })
	}
	asking.Wait()
	for i, id := range ids {
		if faults[i] != nil {
			continue
		}
		back := restartedJSON{ID: id, PID: replies[i].PID}
		if err := a.show(back, func(w io.Writer) { fmt.Fprintf(w, "%s is back: process %d\n", id, back.PID) }); err != nil {
			return err
		}
	}
	return errors.Join(faults...)
}

// askControl asks the dev that runs in dir to bring a node back.
func askControl(ctx context.Context, dir, id string) (controlReply, error) {
	nobody := fmt.Errorf(`no "leasenode dev" runs in %s: start one there, or name its folder with --data-dir`, dir)
	text, err := os.ReadFile(filepath.Join(dir, controlFile))
	if errors.Is(err, os.ErrNotExist) {
		return controlReply{}, nobody
	}
	if err != nil {
		return controlReply{}, fmt.Errorf("find the running dev: %w", err)
	}
	var point controlPoint
	if err := json.Unmarshal(text, &point); err != nil {
		return controlReply{}, fmt.Errorf("%s in %s is damaged: %w", controlFile, dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", point.Address)
	if err != nil {
		return controlReply{}, fmt.Errorf("%w (the one that did, process %d, does not answer: %w)", nobody, point.PID, err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	return exchange(conn, controlRequest{Token: point.Token, Restart: id})
}

func exchange(conn net.Conn, request controlRequest) (controlReply, error) {
	var reply controlReply
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return reply, fmt.Errorf("ask the running dev: %w", err)
	}
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return reply, fmt.Errorf("the running dev did not answer; see what it says: %w", err)
	}
	if reply.Error != "" {
		return reply, errors.New(reply.Error)
	}
	return reply, nil
}
