// Package observe looks at the nodes of a cluster from outside: what memory they have,
// what their folders take up, how far they are. It does not promise that what it tells of
// several nodes was so at one instant. Start reading at [Nodes].
package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// Node is what one node looks like. Sizes are MiB, those of folders what they take up on
// the disk.
type Node struct {
	Resident, Heap       float64
	Goroutines, Files    float64
	Log, State, Snapshot float64
}

// Columns are the names of what [Node.Row] has.
func Columns(node int) []string {
	prefix := fmt.Sprintf("n%d_", node+1)
	var all []string
	for _, name := range []string{"resident_mib", "heap_mib", "goroutines", "files", "log_mib", "state_mib", "snapshots_mib"} {
		all = append(all, prefix+name)
	}
	return all
}

// Row is the node as numbers.
func (n Node) Row() []float64 {
	return []float64{n.Resident, n.Heap, n.Goroutines, n.Files, n.Log, n.State, n.Snapshot}
}

const mib = 1 << 20

// Look returns what the node with that data directory and those metrics looks like.
func Look(ctx context.Context, dir, metrics string) (Node, error) {
	var n Node
	values, err := scrape(ctx, metrics)
	if err != nil {
		return n, err
	}
	n.Resident, n.Heap = values["process_resident_memory_bytes"]/mib, values["go_memstats_heap_inuse_bytes"]/mib
	n.Goroutines, n.Files = values["go_goroutines"], values["process_open_fds"]
	for _, part := range []struct {
		into  *float64
		names []string
	}{{&n.Log, []string{disk.LogFile, disk.WALDir}}, {&n.State, []string{"state"}}, {&n.Snapshot, []string{"snapshots"}}} {
		for _, name := range part.names {
			size, err := diskBytes(filepath.Join(dir, name))
			if err != nil {
				return n, err
			}
			*part.into += size / mib
		}
	}
	return n, nil
}

// scrape reads the metrics that have no labels.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", url, err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = v
		}
	}
	return values, nil
}

// diskBytes is what a file, or all files in a folder, take up. Files come and go
// meanwhile.
func diskBytes(path string) (float64, error) {
	var sum float64
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil && info.Mode().IsRegular() {
				sum += float64(info.Sys().(*syscall.Stat_t).Blocks) * 512
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", path, err)
	}
	return sum, nil
}
