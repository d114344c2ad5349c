package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/leasenode/leasenode/holder"
)

const (
	startTimeout   = time.Minute      // until all nodes of a new cluster are healthy
	restartTimeout = 30 * time.Second // until a node that was brought back is
	companyTimeout = 5 * time.Second  // until it is told that there is no majority for it
	stopTimeout    = 15 * time.Second // until a node that was asked to stop is killed
	statusTimeout  = 2 * time.Second
	statusPause    = 50 * time.Millisecond
)

// supervisor starts, watches and stops the nodes of a dev cluster. Its methods are
// called by one goroutine, except healthy and restart, which others may call.
type supervisor struct {
	app      *app
	plan     devPlan
	exe      string
	members  []devMember
	current  map[string]*nodeProcess // by member; the latest life
	ended    chan *nodeProcess
	restarts chan restartRequest
}

// restartRequest asks the watching goroutine to bring a node back.
type restartRequest struct {
	id    string
	reply chan<- restartReply // has room for it
}

type restartReply struct {
	process *nodeProcess
	err     error
}

func newSupervisor(a *app, plan devPlan) (*supervisor, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start the nodes with: %w", err)
	}
	return &supervisor{
		app: a, plan: plan, exe: exe, members: plan.members(),
		current: map[string]*nodeProcess{},
		// Room for the end of every process that can run between two looks at it: each
		// node's, and the one that replaces it.
		ended:    make(chan *nodeProcess, 2*maxDevNodes),
		restarts: make(chan restartRequest),
	}, nil
}

// startAll starts every node and returns once there is a leader and all of them are
// healthy. A node that ends before that is an error.
func (s *supervisor) startAll(ctx context.Context) error {
	s.say("starting %d nodes in %s ...", len(s.members), s.plan.dir)
	for _, m := range s.members {
		if err := s.start(m); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the nodes were not healthy within %v; see their logs in %s", startTimeout, s.plan.dir))
	defer cancel()
	status, err := s.ready(ctx)
	if err != nil {
		return err
	}
	return s.tellReady(status)
}

func (s *supervisor) start(m devMember) error {
	p, err := startNode(s.exe, s.app.env, m, s.ended)
	if err != nil {
		return err
	}
	s.current[m.id] = p
	return nil
}

// ready waits until a node says that all of them are healthy and one leads.
func (s *supervisor) ready(ctx context.Context) (holder.Status, error) {
	c, err := s.app.dial(s.endpoints())
	if err != nil {
		return holder.Status{}, err
	}
	defer func() { _ = c.Close() }()
	for {
		status, err := askStatus(ctx, c)
		if err == nil && status.Leader != "" && healthyMembers(status) == len(s.members) {
			return status, nil
		}
		select {
		case p := <-s.ended:
			return holder.Status{}, fmt.Errorf("%s ended at once: %s", p.describe(), p.why())
		case <-ctx.Done():
			return holder.Status{}, context.Cause(ctx)
		case <-time.After(statusPause):
		}
	}
}

func askStatus(ctx context.Context, c cluster) (holder.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return c.Status(ctx)
}

func healthyMembers(status holder.Status) int {
	n := 0
	for _, m := range status.Members {
		if m.Healthy {
			n++
		}
	}
	return n
}

// watch tells about nodes that die and brings back those that are asked for, until
// ctx ends.
func (s *supervisor) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-s.ended:
			if !p.asked {
				s.say("%s died: %s\n%s; bring it back with: %s", p.describe(), p.why(),
					s.survivors(), s.app.commandLine("dev", "restart", p.member.id, "--data-dir", s.plan.dir))
			}
		case r := <-s.restarts:
			p, err := s.bringBack(r.id)
			r.reply <- restartReply{p, err}
		}
	}
}

// survivors says how many nodes run, and whether that is enough.
func (s *supervisor) survivors() string {
	running := 0
	for _, p := range s.current {
		select {
		case <-p.done:
		default:
			running++
		}
	}
	if running > len(s.members)/2 {
		return fmt.Sprintf("%d of %d nodes run, and the cluster goes on", running, len(s.members))
	}
	return fmt.Sprintf("%d of %d nodes run, which is no majority: nothing can be granted", running, len(s.members))
}

// bringBack starts a new life of a node, stopping the present one if there is one.
func (s *supervisor) bringBack(id string) (*nodeProcess, error) {
	p, ok := s.current[id]
	if !ok {
		return nil, fmt.Errorf("there is no node %q here: the nodes are %s to %s", id, s.members[0].id, s.members[len(s.members)-1].id)
	}
	if err := s.stop(p); err != nil {
		s.say("%v", err)
	}
	if err := s.start(p.member); err != nil {
		return nil, err
	}
	s.say("started %s again", s.current[id].describe())
	return s.current[id], nil
}

// restart has the watching goroutine bring a node back and waits until it is
// healthy. It is safe for concurrent use.
func (s *supervisor) restart(ctx context.Context, id string) (*nodeProcess, error) {
	reply := make(chan restartReply, 1)
	select {
	case s.restarts <- restartRequest{id, reply}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case r := <-reply:
		if r.err != nil {
			return nil, r.err
		}
		return r.process, s.healthy(ctx, r.process)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// healthy waits until the node of p says that it is. It does not wait for long where
// there is no majority.
func (s *supervisor) healthy(ctx context.Context, p *nodeProcess) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restartTimeout, fmt.Errorf("%s runs, but is not healthy after %v; see %s", p.describe(), restartTimeout, p.member.log))
	defer cancel()
	c, err := s.app.dial([]string{p.member.apiAddr})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	company := time.Now() // when it last had a majority, or nothing was known
	for {
		status, err := askStatus(ctx, c)
		if err == nil && healthyIn(status, p.member.id) {
			return nil
		}
		down := silentMembers(status)
		if err != nil || len(down) < (len(s.members)+1)/2 {
			company = time.Now()
		}
		if time.Since(company) > companyTimeout {
			return s.alone(p, down)
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once: %s", p.describe(), p.why())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(statusPause):
		}
	}
}

// alone is the error for a node that runs while so many others are down that there is no
// majority.
func (s *supervisor) alone(p *nodeProcess, down []string) error {
	words := append([]string{"dev", "restart", p.member.id}, down...)
	return fmt.Errorf("%s runs, but only %d of %d nodes do, which is no majority: nothing can be granted; bring back others too: %s",
		p.describe(), len(s.members)-len(down), len(s.members), s.app.commandLine(append(words, "--data-dir", s.plan.dir)...))
}

func healthyIn(status holder.Status, id string) bool {
	for _, m := range status.Members {
		if m.ID == id {
			return m.Healthy
		}
	}
	return false
}

// silentMembers returns those that did not answer.
func silentMembers(status holder.Status) []string {
	var ids []string
	for _, m := range status.Members {
		if !answered(m) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// stopAll stops all nodes.
func (s *supervisor) stopAll() error {
	if len(s.current) == 0 {
		return nil
	}
	s.say("stopping all nodes ...")
	err := s.stop(slices.Collect(maps.Values(s.current))...)
	s.say("stopped")
	return err
}

// stop asks processes to stop and returns when they have.
func (s *supervisor) stop(processes ...*nodeProcess) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, p := range processes {
		p.ask()
	}
	var faults []error
	for _, p := range processes {
		faults = append(faults, p.stopped(ctx))
	}
	return errors.Join(faults...)
}

func (s *supervisor) endpoints() []string {
	var endpoints []string
	for _, m := range s.members {
		endpoints = append(endpoints, m.apiAddr)
	}
	return endpoints
}
