package fsm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

func TestVerifyCounts(t *testing.T) {
	m := newMachine(t)
	if census, err := m.Verify(); err != nil || census.Keys != 0 {
		t.Errorf("before anything: %+v, %v", census, err)
	}
	m = eventful(t)
	for _, state := range []*machine{m, m.restored()} {
		census, err := state.Verify()
		if err != nil {
			t.Fatal(err)
		}
		now, _ := m.Clock()
		want := fsm.Census{Digest: m.lastDigest(), Now: now, Keys: 2, Held: 2, HighestEpoch: 3}
		if census != want {
			t.Errorf("%+v, want %+v", census, want)
		}
	}
	m.since = 48 * time.Hour
	m.must(acquire("k", "z", "", time.Minute))
	if census, err := m.Verify(); err != nil || census.Held != 1 || census.HighestEpoch != 4 {
		t.Errorf("%+v, %v", census, err)
	}
}

// Whatever the rules make is right in its eyes.
func TestVerifyAcceptsWhatTheRulesMake(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := openMachine(t, fsm.Settings{MaxKeys: 4, HistoryGrants: 2, HistoryRenewals: 2, HistoryOperations: 9})
		for range 300 {
			m.since += time.Duration(r.Int64N(int64(time.Second)))
			key, owner, epoch := fmt.Sprintf("k%d", r.IntN(5)), fmt.Sprintf("o%d", r.IntN(2)), uint64(0)
			if epoch = m.get(key).Record.Epoch; epoch == 0 {
				epoch = 1
			}
			ttl := lease.MinTTL + time.Duration(r.IntN(3000))*time.Millisecond
			m.do([]lease.Mutation{acquire(key, owner, "", ttl), renew(key, owner, epoch, ttl), release(key, owner, epoch), forget(key, owner, epoch)}[r.IntN(4)])
		}
		if census, err := m.Verify(); err != nil || census.Keys == 0 || census.Digest != m.lastDigest() {
			t.Fatalf("seed %d: %+v, %v", seed, census, err)
		}
	}
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		alter func(*lease.Record)
		want  string
	}{
		{"another owner", func(r *lease.Record) { r.Owner = "thief" }, "not those that the digest is of"},
		{"no owner", func(r *lease.Record) { r.Owner = "" }, "owner"},
		{"epoch 0", func(r *lease.Record) { r.Epoch = 0 }, "corrupt"},
		{"a floor above the epoch", func(r *lease.Record) { r.ForgottenAtEpoch = 9 }, "forgotten floor"},
		{"a floor that went back", func(r *lease.Record) { r.ForgottenAtEpoch = 0 }, "epoch 1 was forgotten"},
		{"an end in the future", func(r *lease.Record) { r.LeaseUntil = r.LeaseUntil.Add(240 * time.Hour) }, "after the latest end"},
		{"an end before its grant", func(r *lease.Record) { r.LeaseUntil = 1 }, "was granted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := eventful(t)
			value, err := m.StoredValue("k")
			if err != nil {
				t.Fatal(err)
			}
			if value, err = fsm.AlterRecord("k", value, c.alter); err != nil {
				t.Fatal(err)
			}
			wrong(t, m, fsm.Records, "k", value, c.want)
		})
	}
	t.Run("a record that is gone", func(t *testing.T) { wrong(t, eventful(t), fsm.Records, "k", nil, "no record") })
	t.Run("bytes", func(t *testing.T) { wrong(t, eventful(t), fsm.Records, "k", []byte{9}, "corrupt") })
	t.Run("an operation too many", func(t *testing.T) {
		wrong(t, eventful(t), fsm.Lifecycle, "\xff\xff\xff\xff\xff\xff\xff\xff", []byte{1, 0, 1, 'k'}, "were counted")
	})
	t.Run("a released lease that ends later", func(t *testing.T) {
		m := eventful(t)
		m.must(release("k", "x", 3))
		value, err := m.StoredValue("k")
		if err != nil {
			t.Fatal(err)
		}
		if value, err = fsm.AlterRecord("k", value, func(r *lease.Record) { r.LeaseUntil++ }); err != nil {
			t.Fatal(err)
		}
		wrong(t, m, fsm.Records, "k", value, "it was released at")
	})
}

// wrong overwrites a part of m's state and holds that Verify says what is wrong.
func wrong(t *testing.T, m *machine, bucket, key string, value []byte, want string) {
	t.Helper()
	if err := m.Overwrite(bucket, key, value); err != nil {
		t.Fatal(err)
	}
	_, err := m.Verify()
	var corrupt *fsm.CorruptStateError
	var invariant *fsm.InvariantError
	if !errors.As(err, &corrupt) && !errors.As(err, &invariant) {
		t.Fatalf("the error is %v", err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in: %v", want, err)
	}
}
