package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/cluster"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

var (
	calmTime  = flag.Duration("calm", 4*time.Second, "how long each trouble lasts in which nothing may happen")
	calmStore = flag.String("log-store", "", "how nodes keep their logs, bolt or wal; empty for some in each way")
)

// spinEnv has this test program do nothing but use up a CPU.
const spinEnv = "CLUSTER_TEST_SPIN"

// spin runs until it is killed.
func spin() {
	for n := 0; ; n++ {
		_ = n
	}
}

// TestTroublesInWhichNobodyIsDeposed does to a cluster what looks a little like the end of
// its leader's process: no other may be elected, and every write has to succeed.
func TestTroublesInWhichNobodyIsDeposed(t *testing.T) {
	for name, trouble := range map[string]struct {
		nodes int
		begin func(s *scene, leader, follower int) (end func())
	}{
		// The follower finds its connections from the leader gone, again and again.
		"resets on the link of the leader and a follower": {3, func(s *scene, leader, follower int) func() {
			return s.link(leader, follower, nemesis.LinkState{ResetEvery: 2 * time.Millisecond})
		}},
		"resets on one link of five nodes": {5, func(s *scene, leader, follower int) func() {
			return s.link(leader, follower, nemesis.LinkState{ResetEvery: 2 * time.Millisecond})
		}},
		"resets on the link of two followers": {3, func(s *scene, leader, follower int) func() {
			return s.link(3-leader-follower, follower, nemesis.LinkState{ResetEvery: 2 * time.Millisecond})
		}},
		// The follower hears nothing, and would be elected if it were asked in vain only.
		"a black hole between the leader and a follower": {3, func(s *scene, leader, follower int) func() {
			return s.link(leader, follower, nemesis.LinkState{Cut: true})
		}},
		"a slow link of the leader": {3, func(s *scene, leader, follower int) func() {
			return s.link(leader, follower, nemesis.LinkState{Delay: 300 * time.Millisecond, Jitter: 200 * time.Millisecond})
		}},
		"a busy CPU": {3, func(s *scene, _, _ int) func() { return s.busy() }},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a busy CPU" { // which is all that one machine can take
				t.Parallel()
			}
			s := start(t, func(c *cluster.Config) {
				c.Nodes, c.LogStores = trouble.nodes, []string{"wal", "bolt"}
				if *calmStore != "" {
					c.LogStores = []string{*calmStore}
				}
			})
			leader := s.leader(-1)
			witness := s.client(s.Direct()[leader]) // a node that is cut off knows no leader
			before := s.status(witness)
			w := s.write(s.client(s.Direct()...))
			end := trouble.begin(s, leader, (leader+1)%trouble.nodes)
			pause(t, *calmTime)
			during := s.status(witness)
			end()
			count, failed := w.end()
			if failed != nil || count == 0 {
				t.Errorf("of %d writes one failed: %v", count, failed)
			}
			s.ready()
			for _, after := range []holder.Status{during, s.status(witness)} {
				if after.Term != before.Term || after.Leader != before.Leader {
					t.Errorf("%s led in term %d, now %s leads in term %d", before.Leader, before.Term, after.Leader, after.Term)
				}
			}
			for i := range s.Nodes() {
				if log, err := os.ReadFile(s.Log(i)); err != nil || strings.Contains(string(log), "takes the place of the leader that is gone") {
					t.Errorf("n%d stood for election, %v", i+1, err)
				}
			}
			t.Logf("%d writes in %v, term %d", count, *calmTime, before.Term)
		})
	}
}

// pause lets a trouble last.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// link puts both directions between two nodes into a state.
func (s *scene) link(a, b int, state nemesis.LinkState) (end func()) {
	set := func(state nemesis.LinkState) { s.SetLink(a, b, state); s.SetLink(b, a, state) }
	set(state)
	return func() { set(nemesis.LinkState{}) }
}

// busy has processes that do nothing use up twice as many CPUs as there are.
func (s *scene) busy() (end func()) {
	var all []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), spinEnv+"=1")
		s.do(cmd.Start())
		all = append(all, cmd)
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			for _, cmd := range all {
				_ = cmd.Process.Kill() // it runs until then
				_ = cmd.Wait()
			}
		})
	}
	s.t.Cleanup(end)
	return end
}

func (s *scene) status(client *holder.Client) holder.Status {
	s.t.Helper()
	status, err := client.Status(s.within())
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

// writing is callers that write until they are stopped.
type writing struct {
	cancel context.CancelFunc
	joined sync.WaitGroup

	mu     sync.Mutex
	count  int
	failed error
}

func (s *scene) write(client *holder.Client) *writing {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &writing{cancel: cancel}
	s.t.Cleanup(func() { _, _ = w.end() })
	for caller := range 16 {
		w.joined.Go(func() {
			pace := time.NewTicker(20 * time.Millisecond) // other tests have a machine, too
			defer pace.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				<-pace.C
				_, err := client.Acquire(context.WithoutCancel(ctx), lease.AcquireRequest{Key: fmt.Sprintf("%d/%d", caller, n), Owner: "o", TTL: time.Hour})
				w.take(err)
			}
		})
	}
	return w
}

func (w *writing) take(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if w.failed == nil {
		w.failed = err
	}
}

// end stops the callers, and returns how many writes there were and why one has failed.
func (w *writing) end() (int, error) {
	w.cancel()
	w.joined.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.failed
}
