package disk_test

import (
	"testing"
)

func TestAVoteIsNeverHalfWritten(t *testing.T) { onEach(t, testAVoteIsNeverHalfWritten) }

func testAVoteIsNeverHalfWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	after := func(want vote) {
		t.Helper()
		if got := readVote(t, s); got != want {
			t.Errorf("it reads %+v, want %+v", got, want)
		}
		again := open(t, config(t, crashed(t, dir)))
		if got := readVote(t, again); got != want {
			t.Errorf("after a crash it reads %+v, want %+v", got, want)
		}
		closeStores(t, again)
	}
	after(vote{})
	must(t, setTerm(s, 5))
	must(t, castVote(s, 5, "a"))
	after(vote{5, 5, "a"})
	must(t, setTerm(s, 6))
	after(vote{6, 5, "a"})
	must(t, s.Stable.SetUint64([]byte("LastVoteTerm"), 6))
	after(vote{6, 5, "a"})
	must(t, s.Stable.Set([]byte("LastVoteCand"), []byte("b")))
	after(vote{6, 6, "b"})
	// The other way round the candidate would be that of the earlier term.
	if err := s.Stable.Set([]byte("LastVoteCand"), []byte("c")); err == nil {
		t.Error("a candidate without its term was taken")
	}
	after(vote{6, 6, "b"})
	// A vote that was begun and not finished is not that of a later candidate.
	must(t, s.Stable.SetUint64([]byte("LastVoteTerm"), 7))
	must(t, setTerm(s, 8))
	must(t, castVote(s, 8, "d"))
	after(vote{8, 8, "d"})
}

func TestStableValues(t *testing.T) { onEach(t, testStableValues) }

func testStableValues(t *testing.T) {
	s := open(t, config(t, t.TempDir()))
	for _, get := range []func() error{
		func() error { _, err := s.Stable.Get([]byte("k")); return err },
		func() error { _, err := s.Stable.GetUint64([]byte("k")); return err },
	} {
		if err := get(); err == nil || err.Error() != "not found" {
			t.Errorf("an absent key: %v", err)
		}
	}
	must(t, s.Stable.Set([]byte("k"), nil))
	if v, err := s.Stable.Get([]byte("k")); err != nil || len(v) != 0 {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := s.Stable.GetUint64([]byte("k")); err == nil {
		t.Error("nothing is a number")
	}
	for _, key := range [][]byte{nil, make([]byte, 5000)} {
		if err := s.Stable.Set(key, nil); err == nil {
			t.Errorf("a key of %d bytes was taken", len(key))
		}
	}
	if err := s.Stable.Set([]byte("k"), make([]byte, 5000)); err == nil {
		t.Error("a value of 5000 bytes was taken")
	}
}
