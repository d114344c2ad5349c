package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// note is a line between lock and its guard: a word, a number and a text, of which the
// latter two depend on the word.
type note struct {
	word   noteWord
	number int64
	text   string
}

type noteWord string

// What the guard tells lock.
const (
	noteAsk     noteWord = "ask"     // how long is the lease still held?
	noteStarted noteWord = "started" // COMMAND; the number is its process group
	noteFailed  noteWord = "failed"  // to start it; the number is the exit code, the text says why
	noteFenced  noteWord = "fenced"  // COMMAND was told to stop
	noteKilled  noteWord = "killed"  // and that was not enough
	noteEnded   noteWord = "ended"   // everything; the number is the exit code of COMMAND
)

// What lock tells the guard.
const (
	noteLeft   noteWord = "left"   // the answer to ask, in nanoseconds; 0 if it is not held
	noteFence  noteWord = "fence"  // tell COMMAND to stop, now
	noteKill   noteWord = "kill"   // all of it, now
	noteSignal noteWord = "signal" // pass on the one with that number
)

// send writes n. An error means that the other side is gone, and is not returned: the
// end of what it sends says so too.
func (n note) send(w io.Writer) {
	text := strings.ReplaceAll(n.text, "\n", " ")
	_, _ = fmt.Fprintf(w, "%s %d %s\n", n.word, n.number, text)
}

// readNotes sends what comes from r to notes, which it closes at the end.
func readNotes(r io.Reader, notes chan<- note) {
	defer close(notes)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		number, text, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return // the other side is not what it should be
		}
		notes <- note{noteWord(word), n, text}
	}
}
