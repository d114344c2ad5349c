package raftnet

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Member is a node as the cluster knows it.
type Member struct {
	ID string `json:"id"`
	// Addr is the peer address that others are told.
	Addr string `json:"addr"`
	// Incarnation is the life of the data directory that was accepted.
	Incarnation string `json:"incarnation"`
}

// Table is who founded the cluster, in the order of the ids.
type Table []Member

// ClusterID returns the id of the cluster that t founds: the hash of t.
func (t Table) ClusterID() string {
	h := sha256.New()
	for _, m := range t {
		fmt.Fprintf(h, "%q %q %q\n", m.ID, m.Addr, m.Incarnation)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Member returns the member called id.
func (t Table) Member(id string) (Member, bool) {
	i := slices.IndexFunc(t, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return t[i], true
}

func sortTable(t Table) {
	slices.SortFunc(t, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
}

// Identity is what a data directory knows of itself. It is kept in one file, which
// is replaced as a whole and fsynced before any change of it has an effect.
type Identity struct {
	Format int `json:"format"`
	// ID is the node's name.
	ID string `json:"id"`
	// Incarnation names one life of the directory: random, made with it.
	Incarnation string `json:"incarnation"`
	// Starts counts the starts of a process on the directory, so that a connection
	// of an earlier one, or an older copy of the directory, can be told apart.
	Starts uint64 `json:"starts"`
	// Table is who founded the cluster; empty until it is founded.
	Table Table `json:"table,omitempty"`
	// Joined is set once the raft log has its first entry. A directory that says so
	// and has an empty log has lost it.
	Joined bool `json:"joined,omitempty"`

	path string
}

const (
	identityFile   = "identity.json"
	identityFormat = 1
)

// OpenIdentity reads the identity in dir, or makes one if dir has none, counts a
// start, and returns it. A file that cannot be read, is of another node, or is newer
// than this program is an error that says what to do.
func OpenIdentity(dir, id string) (*Identity, error) {
	path := filepath.Join(dir, identityFile)
	raw, err := os.ReadFile(path)
	identity := &Identity{Format: identityFormat, ID: id, Incarnation: rand.Text(), path: path}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := refuseLeftovers(dir); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("read who this node is: %w", err)
	default:
		*identity = Identity{path: path}
		if err := json.Unmarshal(raw, identity); err != nil || identity.Incarnation == "" {
			return nil, fmt.Errorf("%s is damaged: put this node's directory back from a copy of it, or remove the node from its cluster and start it anew on an empty directory", path)
		}
	}
	if identity.Format != identityFormat {
		return nil, fmt.Errorf("%s has format %d, this program knows %d: start the node with a newer leasenode", path, identity.Format, identityFormat)
	}
	if identity.ID != id {
		return nil, fmt.Errorf("%s belongs to node %q, not %q: give each node a directory of its own", dir, identity.ID, id)
	}
	identity.Starts++
	return identity, identity.save()
}

// refuseLeftovers refuses a directory that has a log but no identity: its node could
// vote twice under a new one.
func refuseLeftovers(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, LogFile)); err == nil {
		return fmt.Errorf("%s has a log (%s) but no %s: put the file back from a copy, or start the node anew on an empty directory", dir, LogFile, identityFile)
	}
	return nil
}

// ClusterID returns the id of the node's cluster, "" before it is founded.
func (i *Identity) ClusterID() string {
	if len(i.Table) == 0 {
		return ""
	}
	return i.Table.ClusterID()
}

// SetTable notes, durably, who founded the cluster.
func (i *Identity) SetTable(t Table) error {
	i.Table = t
	return i.save()
}

// SetJoined notes, durably, that the log has begun.
func (i *Identity) SetJoined() error {
	i.Joined = true
	return i.save()
}

func (i *Identity) save() error {
	raw, err := json.MarshalIndent(i, "", "  ")
	if err == nil {
		err = replaceFile(i.path, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write who this node is: %w", err)
	}
	return nil
}

// replaceFile puts data in the place of the file at path, so that after a crash the
// file has either the old content or the new one.
func replaceFile(path string, data []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
