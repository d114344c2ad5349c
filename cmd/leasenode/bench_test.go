package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestHistogramQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<62), 1, 200).Draw(t, "values")
		var whole, half, other histogram
		for i, v := range values {
			whole.add(time.Duration(v))
			part := &half
			if i%2 == 1 {
				part = &other
			}
			part.add(time.Duration(v))
		}
		half.join(&other)
		if half != whole {
			t.Fatal("two halves joined differ from the whole")
		}
		slices.Sort(values)
		for _, q := range []float64{0.01, 0.5, 0.95, 0.99, 1} {
			rank := max(int(q*float64(len(values))+0.5), 1)
			exact := values[rank-1]
			if got := int64(whole.quantile(q)); got < exact || got > exact+exact/64 {
				t.Fatalf("quantile %v is %d, exactly %d", q, got, exact)
			}
		}
	})
}

func TestBenchMeasuresEachOperation(t *testing.T) {
	store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
	got := invocation{cluster: fakeCluster{Store: store}}.run("bench", "--count", "50", "--keys", "10", "--clients", "4", "-o", "json")
	check(t, "code", got.code, exitDone)
	var result benchJSON
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil {
		t.Fatal(err)
	}
	check(t, "results", len(result.Results), 4)
	for i, r := range result.Results {
		check(t, "operation", r.Op, benchOps[i])
		check(t, r.Op, r.Operations, uint64(50))
		if len(r.Errors) != 0 || r.OperationsPerSecond <= 0 || r.MaxMS < r.P99MS || r.P99MS < r.P50MS {
			t.Errorf("%+v", r)
		}
	}
	for method, want := range map[leasetest.Method]int{
		leasetest.Acquire: 50 + 10 + 50 + 10, leasetest.Renew: 50, leasetest.Release: 50, leasetest.Get: 50,
	} {
		check(t, string(method), store.Calls(method), want)
	}
	page, err := store.List(t.Context(), lease.ListRequest{PageSize: lease.MaxPageSize})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "keys", len(page.Answers), 120)
	for _, answer := range page.Answers {
		if !strings.HasPrefix(answer.Record.Key, result.Prefix) {
			t.Errorf("%s is outside %s", answer.Record.Key, result.Prefix)
		}
	}
}

func TestBenchTimesAndCountsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
		store.FailAll(leasetest.Get, leasetest.Fault{DelayBefore: 10 * time.Millisecond})
		store.FailNext(leasetest.Get, leasetest.Fault{Err: lease.ErrUnavailable})
		got := invocation{cluster: fakeCluster{Store: store}}.run("bench", "--op", "get", "--duration", "1s", "--keys", "3", "--clients", "2")
		check(t, "code", got.code, exitDone)
		lines := strings.Split(got.stdout, "\n")
		check(t, "row", strings.Join(strings.Fields(lines[1]), " "), "get 200 200 10.00 ms 10.00 ms 10.00 ms 10.00 ms 1")
	})
}

func TestBenchFails(t *testing.T) {
	store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
	store.FailAll(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable})
	got := invocation{cluster: fakeCluster{Store: store}}.run("bench", "--op", "renew", "--count", "10")
	check(t, "nothing answered", got.code, exitUnavailable)
	store.FailAll(leasetest.Acquire, leasetest.Fault{Err: errors.New("broken")})
	got = invocation{cluster: fakeCluster{Store: store}}.run("bench", "--op", "renew", "--count", "10")
	check(t, "nothing prepared", got, outcome{exitFailed, "", "measuring renew ...\nleasenode: prepare to measure renew: broken\n"})
}

func TestBenchInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
		store.FailAll(leasetest.Get, leasetest.Fault{DelayBefore: 30 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		got := invocation{cluster: fakeCluster{Store: store}, ctx: ctx}.run("bench", "--op", "get", "--duration", "1h", "--clients", "1", "--keys", "1")
		check(t, "code", got.code, exitDone)
		row := strings.Fields(strings.Split(got.stdout, "\n")[1])
		check(t, "count", row[1], "3")
		check(t, "errors", row[len(row)-1], "0")
	})
}

func TestBenchMeasuresHandovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(lease.NewSystemClock())
		got := invocation{cluster: fakeCluster{Store: store}}.run("bench", "--op", "handover", "--count", "50", "--waiters", "5", "-o", "json")
		check(t, "code", got.code, exitDone)
		var result benchJSON
		if err := json.Unmarshal([]byte(got.stdout), &result); err != nil {
			t.Fatal(err)
		}
		check(t, "clients", result.Clients, 5)
		if r := result.Results[0]; r.Operations != 49 || len(r.Errors) != 0 { // the first was no handover
			t.Errorf("%+v", r)
		}
	})
}
