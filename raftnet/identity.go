package raftnet

import (
	"bytes"
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
	"sync"

	"github.com/leasenode/leasenode/raftnet/disk"
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
// is replaced as a whole and fsynced before any change of it has an effect. The fields
// are written by the methods only; the methods are safe for concurrent use.
type Identity struct {
	Format int `json:"format"`
	// ID is the node's name.
	ID string `json:"id"`
	// Incarnation names one life of the directory: random, made with it.
	Incarnation string `json:"incarnation"`
	// Starts counts the starts of a process on the directory, and Boot, random, names
	// this one: so connections of an earlier one, copies of the directory from before its
	// last start, and two processes on copies of it can be told apart. A copy that was
	// made while the last start ran cannot, if it takes the directory's place: only the
	// node itself knew what it has written since.
	Starts uint64 `json:"starts"`
	Boot   string `json:"boot"`
	// Table is who founded the cluster; empty until it is founded.
	Table Table `json:"table,omitempty"`
	// Joined is set once the raft log has its first entry. A directory that says so
	// and has an empty log has lost it.
	Joined bool `json:"joined,omitempty"`
	// Seen is the latest start of each other member that was met.
	Seen map[string]Sighting `json:"seen,omitempty"`
	// Checksum is the SHA-256 of the file with this field empty.
	Checksum string `json:"checksum"`

	path string
	mu   sync.Mutex
}

// Sighting is a start of a node.
type Sighting struct {
	Starts uint64 `json:"starts"`
	Boot   string `json:"boot"`
}

const (
	// IdentityFile is the file in a data directory that says who the node is.
	IdentityFile   = "identity.json"
	identityFormat = 1
)

// OpenIdentity reads the identity in dir, or makes one if dir has none, counts a
// start, and returns it. A file that is damaged, is of another node, or is newer than
// this program is an error that says what to do.
func OpenIdentity(dir, id string) (*Identity, error) {
	identity, err := ReadIdentity(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := refuseLeftovers(dir); err != nil {
			return nil, err
		}
		identity = &Identity{Format: identityFormat, ID: id, Incarnation: rand.Text(), path: filepath.Join(dir, IdentityFile)}
	case err != nil:
		return nil, err
	}
	if identity.ID != id {
		return nil, fmt.Errorf("%s belongs to node %q, not %q: give each node a directory of its own", dir, identity.ID, id)
	}
	identity.Starts++
	identity.Boot = rand.Text()
	return identity, identity.save()
}

// ReadIdentity reads the identity in dir and changes nothing. If there is none, the
// error is [fs.ErrNotExist].
func ReadIdentity(dir string) (*Identity, error) {
	path := filepath.Join(dir, IdentityFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read who this node is: %w", err)
	}
	damaged := func(problem string) error {
		return &disk.CorruptError{File: path, Place: "the file as a whole", Problem: problem}
	}
	if !sealed(raw) {
		return nil, damaged("its checksum is wrong")
	}
	identity := &Identity{path: path}
	if err := json.Unmarshal(raw, identity); err != nil {
		return nil, damaged(err.Error())
	}
	if identity.Format > identityFormat {
		return nil, fmt.Errorf("%s has format %d, this program knows %d: use a newer leasenode", path, identity.Format, identityFormat)
	}
	// What is read has to be, byte for byte, what would be written.
	if written, err := identity.encode(); err != nil || !bytes.Equal(written, raw) {
		return nil, damaged("it is not as a node writes it")
	}
	return identity, nil
}

// checksumField is how the checksum stands in the file, of whatever format.
const checksumField = `"checksum": "`

// sealed reports whether the checksum in a file is that of the rest of it.
func sealed(raw []byte) bool {
	before, rest, found := bytes.Cut(raw, []byte(checksumField))
	sum, after, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return false
	}
	body := append(append(bytes.Clone(before), checksumField+`"`...), bytes.TrimSuffix(after, []byte("\n"))...)
	want := sha256.Sum256(body)
	return string(sum) == hex.EncodeToString(want[:])
}

func (i *Identity) encode() ([]byte, error) {
	i.Checksum = ""
	body, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	i.Checksum = hex.EncodeToString(sum[:])
	raw, err := json.MarshalIndent(i, "", "  ")
	return append(raw, '\n'), err
}

// refuseLeftovers refuses a directory that has a log but no identity: its node could
// vote twice under a new one.
func refuseLeftovers(dir string) error {
	if _, _, err := disk.FindLog(dir); !errors.Is(err, fs.ErrNotExist) {
		return &disk.CorruptError{File: filepath.Join(dir, IdentityFile), Place: "its directory", Problem: "it is missing, though there is a log"}
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
	return i.change(func() { i.Table = t })
}

// SetJoined notes, durably, that the log has begun.
func (i *Identity) SetJoined() error {
	return i.change(func() { i.Joined = true })
}

// seen returns the latest start of node id that was met.
func (i *Identity) seen(id string) Sighting {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Seen[id]
}

// see notes, durably, that node id was met in a start that is new.
func (i *Identity) see(id string, s Sighting) error {
	if i.seen(id) == s {
		return nil
	}
	return i.change(func() {
		if i.Seen == nil {
			i.Seen = map[string]Sighting{}
		}
		if s.Starts > i.Seen[id].Starts {
			i.Seen[id] = s
		}
	})
}

func (i *Identity) change(change func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
	return i.save()
}

func (i *Identity) save() error {
	raw, err := i.encode()
	if err == nil {
		err = replaceFile(i.path, raw)
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
