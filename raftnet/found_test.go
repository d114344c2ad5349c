package raftnet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/raftnet"
)

// found has peers meet and returns each one's outcome.
func (ps *peers) found(ctx context.Context, who ...*peer) (tables []raftnet.Table, errs []error) {
	tables, errs = make([]raftnet.Table, len(who)), make([]error, len(who))
	done := make(chan struct{})
	for i, p := range who {
		go func() {
			tables[i], errs[i] = raftnet.Found(ctx, p.port, ps.addrs)
			if errs[i] == nil {
				p.port.Serve(tables[i])
			}
			done <- struct{}{}
		}()
	}
	for range who {
		<-done
	}
	return tables, errs
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func (ps *peers) mustFound(who ...*peer) {
	ps.t.Helper()
	tables, errs := ps.found(within(ps.t, time.Minute), who...)
	for i := range who {
		if errs[i] != nil || tables[i].ClusterID() != tables[0].ClusterID() {
			ps.t.Fatalf("%s: %v, %v", who[i].identity.ID, tables[i], errs[i])
		}
	}
}

func TestThreeNodesFoundOneCluster(t *testing.T) {
	ps := newPeers(t, "n1", "n2", "n3")
	all := []*peer{ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir()), ps.open("n3", t.TempDir())}
	ps.mustFound(all...)
	for _, p := range all {
		again, err := raftnet.OpenIdentity(p.dir, p.identity.ID)
		if err != nil || again.ClusterID() != all[0].identity.ClusterID() || again.Starts != 2 {
			t.Errorf("%s after a restart: %+v, %v", p.identity.ID, again, err)
		}
		for id := range ps.addrs {
			if conn, err := p.port.Dial(within(t, 10*time.Second), id, raftnet.PurposeCall); id != p.identity.ID {
				if err != nil {
					t.Errorf("%s dials %s: %v", p.identity.ID, id, err)
				} else {
					_ = conn.Close()
				}
			}
		}
	}
	if got := all[0].port.APIAddr("n2"); got != "api-of-n2" {
		t.Errorf("n1 knows n2's API as %q", got)
	}
}

func TestNothingIsFoundedWhileANodeIsMissing(t *testing.T) {
	ps := newPeers(t, "n1", "n2", "n3")
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	_, errs := ps.found(within(t, time.Second), n1, n2)
	for _, err := range errs {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "n3") {
			t.Errorf("%v", err)
		}
	}
}

func TestWipedNodesCannotFoundASecondCluster(t *testing.T) {
	ps := newPeers(t, "n1", "n2", "n3")
	all := []*peer{ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir()), ps.open("n3", t.TempDir())}
	ps.mustFound(all...)
	all[0].close()
	all[1].close()
	wiped := []*peer{ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())}
	_, errs := ps.found(within(t, time.Minute), wiped...)
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "another data directory") {
			t.Errorf("%s: %v", wiped[i].identity.ID, err)
		}
	}
}

func TestANodeThatHadNotWrittenTheTableAdoptsIt(t *testing.T) {
	ps := newPeers(t, "n1", "n2", "n3")
	n3 := ps.open("n3", t.TempDir())
	n1, n2 := ps.open("n1", t.TempDir()), ps.open("n2", t.TempDir())
	ps.mustFound(n1, n2, n3)
	n3.close()
	// as if n3 had crashed before it wrote the table
	if err := n3.identity.SetTable(nil); err != nil {
		t.Fatal(err)
	}
	n3 = ps.open("n3", n3.dir)
	if n3.identity.ClusterID() != "" {
		t.Fatal("the table is still there")
	}
	ps.mustFound(n3)
	if n3.identity.ClusterID() != n1.identity.ClusterID() {
		t.Errorf("%q beside %q", n3.identity.ClusterID(), n1.identity.ClusterID())
	}
}

// Whatever is wrong with a list, nodes that cannot agree neither ask each other without a
// pause nor say so more than once.
func TestDifferingListsFoundNothing(t *testing.T) {
	for name, others := range map[string]func(addrs map[string]string) map[string]string{
		"one more": func(addrs map[string]string) map[string]string {
			return map[string]string{"n1": addrs["n1"], "n2": addrs["n2"], "n3": "127.0.0.1:1"}
		},
		"another address": func(addrs map[string]string) map[string]string {
			return map[string]string{"n1": addrs["n1"], "n2": "localhost" + strings.TrimPrefix(addrs["n2"], "127.0.0.1")}
		},
		"not the first": func(addrs map[string]string) map[string]string {
			return map[string]string{"n2": addrs["n2"], "n3": addrs["n1"]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log, otherLog lockedBuffer
			ps := newPeers(t, "n1", "n2")
			ps.log = &log
			other := &peers{t: t, addrs: others(ps.addrs), log: &otherLog}
			n1, n2 := ps.open("n1", t.TempDir()), other.openAt("n2", ps.addrs["n2"], t.TempDir())
			done := make(chan error, 1)
			go func() {
				_, errs := other.found(within(t, 2*time.Second), n2)
				done <- errs[0]
			}()
			_, errs := ps.found(within(t, 2*time.Second), n1)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(errs[0], context.DeadlineExceeded) {
				t.Errorf("%v, %v", errs[0], err)
			}
			if dials := ps.dials.Load() + other.dials.Load(); dials > 60 {
				t.Errorf("they dialled %d times in 2 s", dials)
			}
			if text := log.String() + otherLog.String(); strings.Count(text, "[WARN]") > 8 || strings.Count(text, "[WARN]") == 0 {
				t.Errorf("they said:\n%.3000s", text)
			}
		})
	}
}

// lockedBuffer is a buffer that several may write to.
type lockedBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}
