package arrows_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/leasenode/leasenode/"

// Imports run one way: cmd -> internal/node -> api, raftnet -> fsm -> lease, and
// holder -> api/bundle, api/wire, api/leasepb, lease.
func TestImportsRunOneWay(t *testing.T) {
	for _, arrow := range []struct {
		pkg       string
		forbidden []string
		reason    string
	}{
		{"lease/...", []string{".", module + "fsm", module + "raftnet", module + "api", module + "holder"}, "the domain imports the standard library only"},
		{"fsm", []string{module + "raftnet", module + "api", module + "holder", module + "internal", "google.golang.org/grpc"}, "the state machine knows no network"},
		{"raftnet/...", []string{module + "api", module + "holder", module + "internal", "google.golang.org/grpc"}, "the consensus does not know what is served"},
		{"api", []string{module + "raftnet", module + "holder", module + "internal"}, "the API says what it needs as interfaces"},
		{"api/wire", []string{module + "fsm", module + "raftnet", "github.com/hashicorp/raft", "go.etcd.io/bbolt"}, "the holder embeds it"},
		{"api/bundle", []string{module + "fsm", module + "raftnet", "github.com/hashicorp/raft", "go.etcd.io/bbolt"}, "the holder embeds it"},
		{"holder", []string{module + "fsm", module + "raftnet", module + "internal", "github.com/hashicorp/raft", "go.etcd.io/bbolt"}, "an embedder of the holder compiles no consensus and no storage"},
		{"internal/node", []string{module + "cmd", module + "holder"}, "a node is no client"},
		{"jepsen-like/check", []string{module + "fsm", module + "raftnet", module + "api", module + "holder", module + "internal"}, "a judge knows only what was recorded"},
		{"jepsen-like/workload", []string{module + "fsm", module + "raftnet", module + "internal"}, "the load is a client's"},
	} {
		for _, dep := range deps(t, arrow.pkg) {
			for _, forbidden := range arrow.forbidden {
				if matches(dep, forbidden) && !strings.HasPrefix(dep, module+strings.TrimSuffix(arrow.pkg, "/...")) {
					t.Errorf("%s imports %s: %s", arrow.pkg, dep, arrow.reason)
				}
			}
		}
	}
}

// matches reports whether dep is forbidden; "." stands for all but the standard library.
func matches(dep, forbidden string) bool {
	if forbidden == "." {
		first, _, _ := strings.Cut(dep, "/")
		return strings.Contains(first, ".")
	}
	return dep == forbidden || strings.HasPrefix(dep, forbidden+"/")
}

// deps returns what the packages import, directly or not, tests aside.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+pkg)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}
