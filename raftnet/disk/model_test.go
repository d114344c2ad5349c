package disk_test

import (
	"os"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// Whatever is done to a storage, in whatever order, with stops, crashes and conversions
// between, it has what a model in memory has.
func TestAStorageIsAsItsModel(t *testing.T) { onEach(t, testAStorageIsAsItsModel) }

func testAStorageIsAsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := quickDir(t)
		ok := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		life := func(kind disk.LogKind) *disk.Stores {
			cfg := config(t, dir)
			if kind != "" {
				cfg.Log = kind
			}
			s, err := disk.Open(cfg)
			ok(err)
			return s
		}
		s := life("")
		m := model{}
		var last uint64
		defer func() { closeStores(t, s) }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				n := rapid.Uint64Range(1, 40).Draw(rt, "entries")
				more := entries(last+1, last+n, m.vote.current)
				more[0].Data = make([]byte, rapid.IntRange(0, 30_000).Draw(rt, "bytes"))
				ok(s.Logs.StoreLogs(more))
				m.log, last = append(slices.Clip(m.log), more...), last+n
			},
			"vote": func(rt *rapid.T) {
				m.vote.current++
				m.vote.term, m.vote.candidate = m.vote.current, rapid.StringN(1, 9, -1).Draw(rt, "candidate")
				ok(setTerm(s, m.vote.current))
				ok(castVote(s, m.vote.term, m.vote.candidate))
			},
			"cut the end": func(rt *rapid.T) {
				if len(m.log) == 0 || last <= m.covered {
					return
				}
				low := rapid.Uint64Range(max(m.covered+1, m.log[0].Index), last).Draw(rt, "low")
				ok(s.Logs.DeleteRange(low, last))
				m.log, last = m.log[:low-m.log[0].Index], low-1
			},
			"cut the front": func(rt *rapid.T) {
				if len(m.log) == 0 {
					return
				}
				high := rapid.Uint64Range(m.log[0].Index, last).Draw(rt, "high")
				if high > m.covered {
					_, err := takeSnapshot(s, high, m.vote.current, 100)
					ok(err)
					m.covered = high
				}
				ok(s.Logs.DeleteRange(0, high))
				m.log = m.log[high-m.log[0].Index+1:]
			},
			"stop": func(rt *rapid.T) {
				closeStores(t, s)
				s = life(rapid.SampledFrom(append(disk.LogKinds(), "", "", "")).Draw(rt, "kind"))
			},
			"crash": func(*rapid.T) {
				left := crashed(t, dir)
				closeStores(t, s)
				ok(os.RemoveAll(dir))
				ok(os.CopyFS(dir, os.DirFS(left)))
				s = life("")
			},
			"": func(rt *rapid.T) {
				if err := m.has(t, s); err != nil {
					rt.Fatal(err)
				}
				if err := s.Logs.GetLog(last+1, &raft.Log{}); err == nil {
					rt.Fatal("there is an entry after the last")
				}
			},
		})
	})
}
