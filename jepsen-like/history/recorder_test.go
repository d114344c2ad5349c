package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// wholeRun has something in every field of a run.
func wholeRun() history.Run {
	record := lease.Record{Key: "a\"<b>", Owner: "o\u2028", Epoch: 3, LeaseUntil: 1_700_000_000_123_456_789, ForgottenAtEpoch: 2, Attributes: map[string]string{"k": "v"}}
	return history.Run{
		Info: history.Info{Name: "chaos", Seed: 7, Nodes: []string{"n1"}, Began: time.Unix(9, 0).UTC(), Length: time.Minute, Options: map[string]string{"faults": "all"}},
		Ops: []history.Op{
			{ID: 1, Client: "c1", Node: "n1", Kind: history.Acquire, Key: "a", Owner: "o", TTL: time.Second, RequestID: "r", Call: 1, Return: 2, Outcome: history.OK, Record: record, Now: 5, Remaining: 4, Changed: true},
			{ID: 2, Client: "c1", Kind: history.Renew, Key: "a", Owner: "o", Epoch: 3, Call: 3, Return: 4, Outcome: history.Unknown, Error: "gone"},
			{ID: 3, Client: "c1", Kind: history.Get, Key: "never", Call: 5, Return: 6, Outcome: history.OK, Record: lease.Record{Key: "never"}},
		},
		Beliefs:    []history.Belief{{Holder: "h", Key: "a", Epoch: 3, From: 1, Until: 2}},
		Writes:     []history.Write{{Seq: 1, Holder: "h", Key: "a", Token: 3, At: 1, Accepted: true}},
		Faults:     []history.Fault{{Kind: "cut", Targets: []string{"n1"}, Detail: "d", From: 1, Until: 2}},
		Events:     []history.NodeEvent{{Node: "n1", What: "exited", At: 3, Detail: "1: bye"}},
		Stored:     []lease.Entry{{Index: 4, Op: lease.OpRelease, Key: "a", Owner: "o", Epoch: 3, At: 7, Wall: time.Unix(8, 1).UTC()}},
		Records:    []lease.Record{record},
		Digests:    []history.Digest{{Node: "n1", Index: 4, Sum: "ff"}},
		Recoveries: []history.Recovery{{Node: "n1", Healed: 3, Served: -1}},
		Watched: []history.Watched{{
			Watcher: "w", Seq: 1, Node: "n1", Mark: history.WatchTold, Renewals: true, Event: "released", Key: "a", Owner: "o", Epoch: 3,
			LeaseUntil: 7, Floor: 2, Index: 4, At: 7, Error: "none", When: 9,
		}},
	}
}

func recordAll(r *history.Recorder, run history.Run) {
	r.SetInfo(run.Info)
	for _, op := range run.Ops {
		r.AddOp(op)
	}
	r.AddBelief(run.Beliefs[0])
	r.AddWrite(run.Writes[0])
	r.AddFault(run.Faults[0])
	r.AddEvent(run.Events[0])
	r.SetStored([]lease.Entry{{Index: 1, Op: lease.OpAcquire}}) // replaced below
	r.SetStored(run.Stored)
	r.SetRecords(run.Records)
	r.AddDigests(run.Digests...)
	r.AddRecovery(run.Recoveries[0])
	r.AddWatched(run.Watched[0])
}

func TestWhatIsRecordedIsKeptAndReadAgain(t *testing.T) {
	want := wholeRun()
	var file bytes.Buffer
	recorder := history.NewRecorder(&file)
	recordAll(recorder, want)
	if got := recorder.Run(); !reflect.DeepEqual(got, want) {
		t.Errorf("in memory:\n%+v\nwant\n%+v", got, want)
	}
	text := file.String()
	got, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("from the file:\n%+v\nwant\n%+v", got, want)
	}
	for _, name := range []string{`"lease_until"`, `"forgotten_at_epoch"`, `"request_id"`, `"op":"release"`} {
		if !strings.Contains(text, name) {
			t.Errorf("the file lacks %s:\n%s", name, text)
		}
	}
}

func TestAnEmptyListReplacesOneThatWasSet(t *testing.T) {
	var file bytes.Buffer
	recorder := history.NewRecorder(&file)
	recorder.SetStored([]lease.Entry{{Index: 1, Op: lease.OpAcquire}})
	recorder.SetStored(nil)
	recorder.SetRecords([]lease.Record{{Key: "a"}})
	recorder.SetRecords(nil)
	run, err := history.Read(&file)
	if err != nil || len(run.Stored) != 0 || len(run.Records) != 0 {
		t.Errorf("read %+v, %v; want nothing stored", run, err)
	}
}

func TestASnapshotIsNotChangedByWhatComesLater(t *testing.T) {
	recorder := history.NewRecorder(nil)
	recorder.AddOp(history.Op{ID: 1})
	before := recorder.Run()
	recorder.AddOp(history.Op{ID: 2})
	if len(before.Ops) != 1 || len(recorder.Run().Ops) != 2 {
		t.Errorf("the snapshot has %d operations, the run %d; want 1 and 2", len(before.Ops), len(recorder.Run().Ops))
	}
}

func TestManyMayRecordAtOnce(t *testing.T) {
	var file bytes.Buffer
	recorder := history.NewRecorder(&file)
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for range 50 {
				recorder.AddOp(history.Op{ID: recorder.NextID(), Client: fmt.Sprint(c), Kind: history.Get, Outcome: history.OK})
			}
		})
	}
	clients.Wait()
	run, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, op := range run.Ops {
		seen[op.ID] = true
	}
	if len(run.Ops) != 400 || len(seen) != 400 {
		t.Errorf("read %d operations with %d ids, want 400 of each", len(run.Ops), len(seen))
	}
}

func TestABrokenFileGivesWhatWasBefore(t *testing.T) {
	good := `{"op":{"id":1,"client":"c","kind":"get","key":"a","call":1,"return":2,"outcome":"ok"}}` + "\n"
	for name, rest := range map[string]string{
		"half a line":  `{"op":{"id":2,"cli`,
		"empty line":   `{}`,
		"other fields": `{"verdict":{}}`,
		"unknown op":   `{"stored":[{"index":1,"op":"evict","key":"a"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			run, err := history.Read(strings.NewReader(good + rest))
			if err == nil || len(run.Ops) != 1 {
				t.Errorf("read %d operations, %v; want the one before, and an error", len(run.Ops), err)
			}
		})
	}
}

func TestAFileThatCannotBeWrittenIsTold(t *testing.T) {
	full := errors.New("disk full")
	recorder := history.NewRecorder(failing{full})
	recorder.AddOp(history.Op{ID: 1})
	if err := recorder.Err(); !errors.Is(err, full) {
		t.Errorf("Err is %v, want %v", err, full)
	}
	if len(recorder.Run().Ops) != 1 {
		t.Error("the run in memory has lost the operation")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

var _ io.Writer = failing{}

// A word that no judge knows would be judged by nobody.
func TestUnknownWordsAreRefused(t *testing.T) {
	for _, op := range []string{`"kind":"get","outcome":"OK"`, `"kind":"steal","outcome":"ok"`} {
		text := `{"op":{"id":7,"client":"c","key":"k","call":1,"return":2,` + op + `}}`
		if _, err := history.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "operation 7") {
			t.Errorf("%s: %v", op, err)
		}
	}
}
