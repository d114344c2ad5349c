package control_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

type clock struct{ state nemesis.ClockState }

func (c *clock) Set(state nemesis.ClockState) error { c.state = state; return nil }

type disk struct{ state nemesis.DiskState }

func (d *disk) Set(state nemesis.DiskState) error {
	if state == "wet" {
		return errors.New("it is wet")
	}
	d.state = state
	return nil
}

func TestTell(t *testing.T) {
	var out strings.Builder
	if err := control.Tell(&out, control.Event{What: control.Killed, Detail: "why"}); err != nil || out.String() != `{"number":0,"event":{"what":"killed","detail":"why"}}`+"\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestServe(t *testing.T) {
	in := strings.NewReader(`{"number":1,"clock":{"rate":0.5,"jump":1000000000}}
{"number":2,"disk":"full"}
{"number":3,"disk":"wet"}
rubbish
{"number":5}
`)
	var out strings.Builder
	var c clock
	var d disk
	if err := control.Serve(in, &out, &c, &d); err != nil {
		t.Fatal(err)
	}
	if c.state != (nemesis.ClockState{Rate: 0.5, Jump: time.Second}) || d.state != nemesis.DiskFull {
		t.Errorf("%+v, %+v", c, d)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{`{"number":1}`, `{"number":2}`, `{"number":3,"error":"it is wet"}`, `{"number":0,"error":`, `{"number":5}`}
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("%s; want %s", lines[i], want[i])
		}
	}
}
