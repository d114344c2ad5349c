package e2e_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// race has the replicas acquire key at one moment, and returns who was granted it,
// after a look at what the others were told.
func race(t *testing.T, key string, replicas map[string]*process, epoch uint64) (winner string) {
	t.Helper()
	for _, p := range replicas {
		p.say("acquire " + key)
	}
	told := map[string]string{}
	for owner, p := range replicas {
		told[owner] = p.line()
		if told[owner] == fmt.Sprintf("held at %d", epoch) {
			if winner != "" {
				t.Fatalf("%s and %s were both granted epoch %d", winner, owner, epoch)
			}
			winner = owner
		}
	}
	for owner, answer := range told {
		if owner != winner && answer != fmt.Sprintf("LEASE_HELD by %s at %d", winner, epoch) {
			t.Errorf("%s was told %q; %q has epoch %d", owner, answer, winner, epoch)
		}
	}
	return winner
}

func startReplicas(t *testing.T, c *cluster, prefix string, ttl time.Duration) map[string]*process {
	t.Helper()
	replicas := map[string]*process{}
	for i := range 6 {
		owner := fmt.Sprintf("%s%d", prefix, i)
		replicas[owner] = startReplica(t, c, owner, ttl)
	}
	return replicas
}

func TestOfSixProcessesOneIsGrantedAFreshKeyAndOneAnExpiredOne(t *testing.T) {
	c := startCluster(t)
	const key = "acme/tenant-7"
	first := startReplicas(t, c, "p", 1500*time.Millisecond)
	winner := race(t, key, first, 1)
	if got := c.history(key); got != winner+":1" {
		t.Errorf("history %s", got)
	}

	second := startReplicas(t, c, "q", time.Minute)
	first[winner].signal(syscall.SIGKILL) // it tells nobody
	for {
		answer, err := c.client.Get(c.within(), lease.GetRequest{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Remaining == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	next := race(t, key, second, 2)
	if got := c.history(key); got != winner+":1 "+next+":2" {
		t.Errorf("history %s", got)
	}
}

// resource refuses a token that is lower than one it has seen.
type resource struct{ seen uint64 }

func (r *resource) write(token uint64) bool {
	if token < r.seen {
		return false
	}
	r.seen = token
	return true
}

func TestAProcessThatWasStoppedSaysFencedFirst(t *testing.T) {
	c := startCluster(t)
	const key = "acme/tenant-7"
	var data resource
	stopped := startReplica(t, c, "stopped", 3*time.Second)
	stopped.say("acquire " + key)
	stopped.wantLine("held at 1")
	data.write(1)
	stopped.signal(syscall.SIGSTOP)
	next := c.holder(c.dial(), holder.Config{Owner: "next", TTL: time.Minute})
	l, err := next.Await(c.within(), key)
	if err != nil || l.Epoch() != 2 {
		t.Fatalf("the next: %v, %v", l, err)
	}
	data.write(l.Epoch())
	stopped.say("check") // waits there when the process comes round
	stopped.signal(syscall.SIGCONT)
	if first := stopped.line(); !strings.HasPrefix(first, "FENCED lease_") {
		t.Errorf("the first it says is %q", first)
	}
	if data.write(1) {
		t.Error("the resource took the token of the stopped one")
	}
	stopped.say("renew")
	if late := stopped.line(); !strings.HasPrefix(late, "LEASE_LOST") && !strings.HasPrefix(late, "FENCED lease_lost, superseded") {
		t.Errorf("its late renewal: %q", late)
	}
	_, err = c.client.Renew(c.within(), lease.RenewRequest{Key: key, Owner: "stopped", Epoch: 1, TTL: time.Minute})
	if lease.CodeOf(err) != lease.CodeLost {
		t.Errorf("the store, asked with its epoch: %v", err)
	}
	if err := l.Check(); err != nil {
		t.Errorf("the next: %v", err)
	}
}
