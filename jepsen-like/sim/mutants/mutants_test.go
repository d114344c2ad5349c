package mutants_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/sim/mutants"
)

var (
	all  = flag.Bool("all", false, "run the slow ones too")
	only = flag.String("only", "", "run only the mutants whose names match this regular expression, slow ones too")
	most = flag.Int("most", 40, "how many seeds may pass before one has to catch a mutant")
)

// result is what became of one mutant.
type result struct {
	mutant  mutants.Mutant
	caught  bool
	by      string // the check
	after   int    // seeds
	built   time.Duration
	ran     time.Duration
	output  string
	trouble error
}

// atOnce is how many mutants are tried at once: compiling one goes along with running
// another.
const atOnce = 2

// TestMutants compiles each mutant and has simulation catch it.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	table := mutants.Table()
	results := make([]result, len(table))
	var joined sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, m := range table {
		results[i].mutant = m
		if !wanted(m) {
			continue
		}
		joined.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			results[i] = try(t, root, m)
		})
	}
	joined.Wait()
	for _, r := range results {
		switch {
		case r.trouble != nil:
			t.Errorf("%s: %v\n%s", r.mutant.Name, r.trouble, r.output)
		case !r.caught && wanted(r.mutant):
			t.Errorf("%s was not caught by %s: %s", r.mutant.Name, r.mutant.Test, r.mutant.Rule)
		}
	}
	t.Logf("\n%s", printed(results))
}

func wanted(m mutants.Mutant) bool {
	if *only != "" {
		return regexp.MustCompile(*only).MatchString(m.Name)
	}
	return *all || !m.Slow
}

// try compiles a mutant and runs the test that has to catch it.
func try(t *testing.T, root string, m mutants.Mutant) (r result) {
	r.mutant = m
	dir := t.TempDir()
	overlay, err := m.Overlay(root, dir)
	if err != nil {
		r.trouble = err
		return r
	}
	began := time.Now()
	binary := filepath.Join(dir, "sim.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, "./jepsen-like/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		r.trouble, r.output = fmt.Errorf("it does not compile: %w", err), string(out)
		return r
	}
	r.built = time.Since(began)
	began = time.Now()
	defer func() { r.ran = time.Since(began) }()
	if m.Test != mutants.Seeds {
		r.run(t, binary, "-test.run=^"+m.Test+"$")
		return r
	}
	const step = 4
	for first := 1; first <= *most && !r.caught && r.trouble == nil; first += step {
		r.run(t, binary, "-test.run=^"+m.Test+"$", fmt.Sprintf("-first=%d", first), fmt.Sprintf("-seeds=%d", step))
		r.after += step
	}
	return r
}

// runTimeout bounds one run of a mutant. One that makes the simulation itself stand
// still counts as trouble, and not as caught.
const runTimeout = 3 * time.Minute

var caughtBy = regexp.MustCompile(`(?m)caught by ([a-z, -]+)`)

// run runs a binary and takes in whether it was red, and why.
func (r *result) run(t *testing.T, binary string, args ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Dir(binary)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.trouble = err
		return
	}
	r.output = out.String()
	found := caughtBy.FindAllStringSubmatch(r.output, -1)
	switch {
	case err == nil:
	case len(found) == 0:
		r.trouble = errors.New("it failed, but not because anything was caught")
	default:
		r.caught = true
		r.by = strings.TrimSpace(found[0][1])
	}
}

// printed is the table of the results.
func printed(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "mutant\tcaught by\tin\tcompiled in\tran for")
	for _, r := range results {
		if r.built == 0 {
			continue
		}
		in := r.mutant.Test
		if in == mutants.Seeds {
			in = fmt.Sprintf("%d seeds", r.after)
		}
		by := r.by
		if !r.caught {
			by = "NOT CAUGHT"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%v\n", r.mutant.Name, by, in, r.built.Round(100*time.Millisecond), r.ran.Round(100*time.Millisecond))
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return b.String()
}

// Every mutant's text is where it has to be.
func TestTableIsUpToDate(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range mutants.Table() {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if _, err := m.Overlay(root, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Error(err)
	}
}
