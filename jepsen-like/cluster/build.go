package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

const module = "github.com/leasenode/leasenode"

// Binaries are the programs that nodes can be.
type Binaries struct {
	// Leasenode is the product, Chaosnode the harness's own node program.
	Leasenode, Chaosnode string
}

// Build builds both programs into dir with the go command, which has to find this
// module from the working directory.
func Build(ctx context.Context, dir string) (Binaries, error) {
	b := Binaries{Leasenode: filepath.Join(dir, "leasenode"), Chaosnode: filepath.Join(dir, "chaosnode")}
	for _, build := range []struct{ binary, pkg string }{
		{b.Leasenode, module + "/cmd/leasenode"},
		{b.Chaosnode, module + "/jepsen-like/chaosnode"},
	} {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", build.binary, build.pkg).CombinedOutput(); err != nil {
			return Binaries{}, fmt.Errorf("build %s: %w\n%s", build.pkg, err, out)
		}
	}
	return b, nil
}
