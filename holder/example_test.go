package holder_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// The examples run on a store in memory, as your own tests can. A real program has
// instead:
//
//	store, err := holder.Dial([]string{"10.0.0.1:7201", "10.0.0.2:7201", "10.0.0.3:7201"})
func store() lease.Store { return leasetest.NewMemory(lease.NewSystemClock()) }

// Own one tenant: acquire it when it is free, look before every act, give it back.
func ExampleHolder_Acquire() {
	ctx := context.Background()
	h, err := holder.New(store(), holder.Config{Owner: "replica-1", TTL: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	defer h.Close()

	l, err := h.Acquire(ctx, "tenants/acme")
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		fmt.Println("go to", held.Record.Owner)
		return
	}
	if err != nil {
		panic(err)
	}
	defer func() { _ = l.Release(ctx) }()

	for _, request := range []string{"deposit 5", "withdraw 3"} {
		if err := l.Check(); err != nil {
			fmt.Println("no longer the owner:", err)
			return
		}
		fmt.Println(request, "with token", l.Epoch())
	}

	_, err = h.Acquire(ctx, "tenants/acme")
	fmt.Println(lease.CodeOf(err))
	// Output:
	// deposit 5 with token 1
	// withdraw 3 with token 1
	// LEASE_HELD
}

// Leader election: any number of replicas call Run; the work runs in one at a time, and
// in another when that one is gone.
func ExampleHolder_Run() {
	s := store()
	var replicas sync.WaitGroup
	for i := range 3 {
		replicas.Go(func() {
			h, err := holder.New(s, holder.Config{Owner: fmt.Sprintf("replica-%d", i), TTL: time.Second})
			if err != nil {
				panic(err)
			}
			defer h.Close()
			lead := func(ctx context.Context, l *holder.Lease) error {
				fmt.Println("leading in term", l.Epoch())
				return nil // a real one goes on until ctx ends
			}
			if err := h.Run(context.Background(), "scheduler/leader", lead, holder.ContendAgain()); err != nil {
				fmt.Println(err)
			}
		})
	}
	replicas.Wait()
	// Output:
	// leading in term 1
	// leading in term 2
	// leading in term 3
}

// Own many shards: one holder for all of them; their renewals travel together.
func ExampleHolder_shards() {
	ctx := context.Background()
	s := store()
	var replicas []*holder.Holder
	for _, name := range []string{"replica-1", "replica-2"} {
		h := replica(s, name)
		defer h.Close()
		replicas = append(replicas, h)
	}
	// Each takes what is free, up to its share.
	const shards, share = 16, 8
	for _, h := range replicas {
		var mine []*holder.Lease
		for shard := 0; shard < shards && len(mine) < share; shard++ {
			l, err := h.Acquire(ctx, fmt.Sprintf("shards/%02d", shard))
			switch lease.CodeOf(err) {
			case lease.CodeHeld:
				continue
			case "":
				mine = append(mine, l)
			default:
				panic(err)
			}
		}
		fmt.Println("from", mine[0].Key(), "to", mine[len(mine)-1].Key())
	}
	// Output:
	// from shards/00 to shards/07
	// from shards/08 to shards/15
}

// accounts stands for a table in a database:
//
//	CREATE TABLE accounts (id text PRIMARY KEY, balance int, token bigint)
type accounts struct {
	balance int
	token   uint64
}

// update stands for
//
//	UPDATE accounts SET balance = $1, token = $2 WHERE id = $3 AND token <= $2
//
// and returns how many rows were affected.
func (a *accounts) update(balance int, token uint64) int {
	if a.token > token {
		return 0
	}
	a.balance, a.token = balance, token
	return 1
}

// Protect a table with the token: a write of a former owner that comes late, however
// late, changes no row.
func ExampleLease_Epoch_sqlTable() {
	ctx := context.Background()
	s := store()
	var table accounts
	write := func(l *holder.Lease, balance int) {
		if table.update(balance, l.Epoch()) == 0 {
			fmt.Println(l.Owner(), "is not the owner any more: nothing was written")
			return
		}
		fmt.Println(l.Owner(), "wrote", table.balance)
	}

	h1, h2 := replica(s, "replica-1"), replica(s, "replica-2")
	defer h1.Close()
	defer h2.Close()
	first, _ := h1.Acquire(ctx, "accounts/7")
	write(first, 100)
	_ = first.Release(ctx) // or it died, or was stopped, or cut off
	second, _ := h2.Acquire(ctx, "accounts/7")
	write(second, 70)
	write(first, 120) // it was on its way all the time
	// Output:
	// replica-1 wrote 100
	// replica-2 wrote 70
	// replica-1 is not the owner any more: nothing was written
}

func replica(s lease.Store, owner string) *holder.Holder {
	h, err := holder.New(s, holder.Config{Owner: owner, TTL: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	return h
}

// bucket stands for an object store that can put an object only if none of that name is
// there (If-None-Match: *).
type bucket map[string]string

func (b bucket) putIfAbsent(name, body string) bool {
	if _, taken := b[name]; taken {
		return false
	}
	b[name] = body
	return true
}

func (b bucket) list() []string {
	var names []string
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Protect an object store, which compares no tokens: put the token into the names, zero
// padded, first of all. A new owner begins with an object that seals what came before;
// readers take what is of the highest epoch, and for each epoch before that only what
// the sealing object lists.
func ExampleLease_Epoch_objectStore() {
	ctx := context.Background()
	s := store()
	b := bucket{}
	name := func(l *holder.Lease, sequence int) string {
		return fmt.Sprintf("%020d/%06d", l.Epoch(), sequence)
	}

	h1, h2 := replica(s, "replica-1"), replica(s, "replica-2")
	defer h1.Close()
	defer h2.Close()
	first, _ := h1.Acquire(ctx, "accounts/7")
	b.putIfAbsent(name(first, 0), fmt.Sprint("seal of ", b.list()))
	b.putIfAbsent(name(first, 1), "open account")
	_ = first.Release(ctx)

	second, _ := h2.Acquire(ctx, "accounts/7")
	b.putIfAbsent(name(second, 0), fmt.Sprint("seal of ", b.list()))
	b.putIfAbsent(name(first, 2), "a late write") // not in the seal: nobody reads it
	b.putIfAbsent(name(second, 1), "close account")
	for _, object := range b.list() {
		fmt.Println(object[15:], b[object])
	}
	// Output:
	// 00001/000000 seal of []
	// 00001/000001 open account
	// 00001/000002 a late write
	// 00002/000000 seal of [00000000000000000001/000000 00000000000000000001/000001]
	// 00002/000001 close account
}

// Give the time that is left to a call that must not outlast the lease, and end the
// process if work does not heed its context.
func ExampleAtHardDeadline() {
	h, err := holder.New(store(), holder.Config{Owner: "replica-1", TTL: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	exit := holder.AtHardDeadline(func(l *holder.Lease) {
		panic(fmt.Sprintf("still working for %s, which is not ours any more", l.Key())) // or os.Exit(1)
	})
	err = h.Run(context.Background(), "batch/nightly", func(ctx context.Context, l *holder.Lease) error {
		call, cancel := context.WithTimeout(ctx, l.Remaining())
		defer cancel()
		return call.Err()
	}, exit)
	fmt.Println(err)
	// Output: <nil>
}
