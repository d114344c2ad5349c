package workload_test

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/gofrs/flock"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

func TestTheFileRefusesALowerToken(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		token    uint64
		accepted bool
	}{{2, true}, {2, true}, {5, true}, {4, false}, {5, true}, {6, true}, {5, false}} {
		// Each time anew: what it remembers is in the file.
		w, err := workload.NewFileResource(dir, workload.Monotonic).Write(history.Write{Holder: "a holder", Key: "k/1", Token: c.token})
		if err != nil || w.Seq != i+1 || w.Accepted != c.accepted || w.At == 0 || w.Holder != "a holder" {
			t.Errorf("attempt %d with %d: %+v, %v", i, c.token, w, err)
		}
	}
}

func TestTheFileIsOneForAll(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var seqs []int
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			resource := workload.NewFileResource(dir, workload.Monotonic)
			for token := range uint64(25) {
				w, err := resource.Write(history.Write{Holder: "h", Key: "k", Token: token + uint64(n)})
				if errors.Is(err, workload.ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seqs = append(seqs, w.Seq)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != i+1 {
			t.Fatalf("decision %d has the number %d", i+1, seq)
		}
	}
}

func TestTheFileOutlivesAWriterThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, hex.EncodeToString([]byte("k")))
	if err := os.WriteFile(path, []byte("1 7 7 accepted 12 h\n2 9 9 acc"), 0o600); err != nil {
		t.Fatal(err)
	}
	resource := workload.NewFileResource(dir, workload.Monotonic)
	if w, err := resource.Write(history.Write{Holder: "h", Key: "k", Token: 8}); err != nil || w.Seq != 2 || !w.Accepted {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err := resource.Write(history.Write{Holder: "h", Key: "k", Token: 7}); err != nil || w.Seq != 3 || w.Accepted {
		t.Errorf("%+v, %v", w, err)
	}
	if err := os.WriteFile(path, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := resource.Write(history.Write{Holder: "h", Key: "k", Token: 8}); err == nil {
		t.Error("a line that is not its own is no error")
	}
}

func TestAFileThatIsLockedIsBusy(t *testing.T) {
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, hex.EncodeToString([]byte("k"))+".lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := workload.NewFileResource(dir, workload.Monotonic).Write(history.Write{Holder: "h", Key: "k", Token: 8}); !errors.Is(err, workload.ErrBusy) {
		t.Errorf("%v", err)
	}
}
