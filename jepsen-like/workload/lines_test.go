package workload_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

const ms = time.Millisecond

func TestLinesSurvive(t *testing.T) {
	var out bytes.Buffer
	w := workload.NewWriter(&out)
	g := workload.Grant{Key: "a key  with spaces ", Epoch: 7}
	w.Held(g, workload.Span{From: 1 * ms, Until: 2 * ms})
	w.Released(g, 3*ms)
	w.Fenced(g, 4*ms)
	w.Wrote(history.Write{Key: g.Key, Token: 7, Seq: 9, At: 5 * ms, Accepted: true})
	w.Wrote(history.Write{Key: g.Key, Token: 7, Seq: 10, At: 6 * ms})
	var lines []workload.Line
	err := workload.Scan(strings.NewReader(out.String()+"\n# a remark\nheld 1 2"), func(l workload.Line) { lines = append(lines, l) })
	want := []workload.Line{
		{Verb: "held", Grant: g, Span: workload.Span{From: 1 * ms, Until: 2 * ms}},
		{Verb: "released", Grant: g, At: 3 * ms},
		{Verb: "fenced", Grant: g, At: 4 * ms},
		{Verb: "wrote", Grant: g, Seq: 9, At: 5 * ms, Accepted: true},
		{Verb: "wrote", Grant: g, Seq: 10, At: 6 * ms},
	}
	if err != nil || !reflect.DeepEqual(lines, want) || w.Err() != nil {
		t.Errorf("%v, %v: %+v of\n%s", err, w.Err(), lines, out.String())
	}
}

func TestLinesThatAreNone(t *testing.T) {
	for text, says := range map[string]string{
		"":                                                      "it wrote nothing",
		"hello\n":                                               `its first line is "hello" and has to be "leasenode-workload 1"`,
		"leasenode-workload 2\n":                                `"leasenode-workload 2"`,
		"leasenode-workload 1\nhold 1 2 3 k\n":                  `its line 2, "hold 1 2 3 k": it has to begin with`,
		"leasenode-workload 1\nheld 0 2 3 k\n":                  `EPOCH is "0"`,
		"leasenode-workload 1\nheld 1 x 3 k\n":                  `FROM is "x"`,
		"leasenode-workload 1\nheld 1 2 3\n":                    "it names no key",
		"leasenode-workload 1\n\nreleased 1 -2 k\n":             `its line 3, "released 1 -2 k": AT is "-2"`,
		"leasenode-workload 1\nwrote 1 0 2 accepted k\n":        `SEQ is "0"`,
		"leasenode-workload 1\nwrote 1 - 2 perhaps k\n":         `the decision is "perhaps"`,
		"leasenode-workload 1\nheld 99999999999999999999 2 3 k": "", // without its end
	} {
		err := workload.Scan(strings.NewReader(text), func(workload.Line) {})
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add("leasenode-workload 1\nheld 1 2 3 k\nwrote 1 - 2 accepted k\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = workload.Scan(strings.NewReader(text), func(l workload.Line) {
			if l.Grant.Key == "" || l.Grant.Epoch == 0 || l.At < 0 || l.Span.From < 0 {
				t.Errorf("%q gives %+v", text, l)
			}
		})
	})
}

// told is a line of holder h with epoch 1 of key k.
func told(verb string, moments ...time.Duration) workload.Line {
	line := workload.Line{Verb: verb, Grant: workload.Grant{Key: "k", Epoch: 1}, At: moments[0]}
	if verb == "held" {
		line.Span = workload.Span{From: moments[0], Until: moments[1]}
	}
	return line
}

func TestTheLedgerJoinsAndCuts(t *testing.T) {
	for name, c := range map[string]struct {
		lines []workload.Line
		want  []workload.Span
	}{
		"joined":               {[]workload.Line{told("held", 1*ms, 5*ms), told("held", 2*ms, 6*ms), told("held", 6*ms, 7*ms)}, []workload.Span{{From: 1 * ms, Until: 7 * ms}}},
		"within":               {[]workload.Line{told("held", 1*ms, 9*ms), told("held", 2*ms, 6*ms)}, []workload.Span{{From: 1 * ms, Until: 9 * ms}}},
		"apart":                {[]workload.Line{told("held", 1*ms, 5*ms), told("held", 6*ms, 7*ms)}, []workload.Span{{From: 1 * ms, Until: 5 * ms}, {From: 6 * ms, Until: 7 * ms}}},
		"released":             {[]workload.Line{told("held", 1*ms, 5*ms), told("released", 3*ms)}, []workload.Span{{From: 1 * ms, Until: 3 * ms}}},
		"fenced, late":         {[]workload.Line{told("held", 1*ms, 5*ms), told("fenced", 8*ms)}, []workload.Span{{From: 1 * ms, Until: 5 * ms}}},
		"resumed":              {[]workload.Line{told("held", 1*ms, 5*ms), told("fenced", 3*ms), told("held", 4*ms, 9*ms)}, []workload.Span{{From: 1 * ms, Until: 3 * ms}, {From: 4 * ms, Until: 9 * ms}}},
		"before it began":      {[]workload.Line{told("held", 3*ms, 5*ms), told("released", 2*ms)}, nil},
		"nothing to give back": {[]workload.Line{told("released", 2*ms)}, nil},
	} {
		recorder := history.NewRecorder(nil)
		ledger := workload.NewLedger(1*ms, recorder)
		for _, line := range c.lines {
			ledger.Take("h", line)
		}
		ledger.Close()
		var got []workload.Span
		for _, b := range recorder.Run().Beliefs {
			if b.Holder != "h" || b.Key != "k" || b.Epoch != 1 {
				t.Errorf("%s: %+v", name, b)
			}
			got = append(got, workload.Span{From: b.From + 1*ms, Until: b.Until + 1*ms})
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestTheLedgerNumbersWhatHasNoNumber(t *testing.T) {
	recorder := history.NewRecorder(nil)
	ledger := workload.NewLedger(1*ms, recorder)
	for _, at := range []time.Duration{5 * ms, 3 * ms, 4 * ms} {
		ledger.Take("h", workload.Line{Verb: "wrote", Grant: workload.Grant{Key: "k", Epoch: 1}, At: at, Accepted: true})
	}
	ledger.Take("h", workload.Line{Verb: "held", Grant: workload.Grant{Key: "k", Epoch: 1}, Span: workload.Span{From: 1, Until: 2}})
	ledger.Close()
	run := recorder.Run()
	for i, w := range run.Writes {
		if w.Seq != i+1 || w.At != time.Duration(i+2)*ms {
			t.Errorf("write %d is %+v", i, w)
		}
	}
	if len(run.Writes) != 3 || ledger.Grants() != 1 {
		t.Errorf("%d writes, %d grants", len(run.Writes), ledger.Grants())
	}
}
