package raftnet_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

func TestIdentityRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := raftnet.OpenIdentity(dir, "n1"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "identity.json")
	for _, c := range []struct{ name, id, content, want string }{
		{"another node", "n2", "", `belongs to node "n1"`},
		{"a newer format", "n1", seal(`{"format": 2, "id": "n1", "new": "x", "checksum": ""}`), "newer leasenode"},
		{"a newer format that is damaged", "n1", strings.Replace(seal(`{"format": 2, "id": "n1", "new": "x", "checksum": ""}`), "x", "y", 1), "damaged"},
		{"other white space", "n1", seal(`{"format": 1,"id": "n1", "incarnation": "x", "starts": 1, "boot": "b", "checksum": ""}`), "damaged"},
		{"no checksum", "n1", `{"format":1,"id":"n1","incarnation":"x","starts":1}`, "damaged"},
		{"damage", "n1", `{"format":1,`, "damaged"},
		{"no incarnation", "n1", `{"format":1,"id":"n1"}`, "damaged"},
	} {
		if c.content != "" {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := raftnet.OpenIdentity(dir, c.id); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	lost := t.TempDir()
	if err := os.WriteFile(filepath.Join(lost, disk.LogFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := raftnet.OpenIdentity(lost, "n1"); err == nil {
		t.Error("a log without an identity was taken")
	}
}

func TestALostLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	begin := func() error {
		identity, err := raftnet.OpenIdentity(dir, "n1")
		if err != nil {
			return err
		}
		if err := identity.SetTable(raftnet.Table{{ID: "n1", Addr: "a", Incarnation: identity.Incarnation}}); err != nil {
			return err
		}
		ended := func(err error) { t.Errorf("storage: %v", err) }
		stores, err := disk.Open(disk.Config{
			Dir: dir, Begun: identity.Joined, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
			OnFailure: ended, End: ended, Leads: func() bool { return false },
		})
		if err != nil {
			return err
		}
		return errors.Join(raftnet.Begin(identity, raftnet.Stores{Logs: stores.Logs, Stable: stores.Stable, Snapshots: stores.Snapshots}), stores.Close())
	}
	for i := range 2 {
		if err := begin(); err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, disk.LogFile)); err != nil {
		t.Fatal(err)
	}
	if err := begin(); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("an empty log: %v", err)
	}
}

func TestNoDamageToTheIdentityIsOverlooked(t *testing.T) {
	dir := t.TempDir()
	identity, err := raftnet.OpenIdentity(dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.SetTable(raftnet.Table{{ID: "n1", Addr: "a:1", Incarnation: identity.Incarnation}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, raftnet.IdentityFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for offset := range good {
		for name, bad := range map[string][]byte{"cut": good[:offset], "flipped": flip(good, offset)} {
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := raftnet.ReadIdentity(dir); err == nil || errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s at %d: %v", name, offset, err)
			}
		}
	}
}

// seal fills in the checksum of an identity.
func seal(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.Replace(text, `"checksum": ""`, `"checksum": "`+hex.EncodeToString(sum[:])+`"`, 1) + "\n"
}

func flip(good []byte, offset int) []byte {
	bad := append([]byte{}, good...)
	bad[offset] ^= 1 << (offset % 8)
	return bad
}
