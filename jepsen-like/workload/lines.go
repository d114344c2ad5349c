package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// The lines in which a program tells what it believed and wrote. The first is
//
//	leasenode-workload 1
//
// and each other one of
//
//	held EPOCH FROM UNTIL KEY
//	released EPOCH AT KEY
//	fenced EPOCH AT KEY
//	wrote TOKEN SEQ AT accepted|refused KEY
//
// Words are separated by one space, and the key is all the rest of the line: keys can
// have spaces, but no control characters. Moments are nanoseconds of [Monotonic]. SEQ
// is the number that the resource gave the attempt, of all attempts of its key; or "-"
// if it gives none, and then AT has to be taken while the resource decides. Empty lines
// and those that begin with "#" say nothing.
const firstLine = "leasenode-workload 1"

const (
	accepted = "accepted"
	refused  = "refused"
)

// Line is one line, understood.
type Line struct {
	Verb  string // held, released, fenced, wrote
	Grant Grant
	// Span is of held; At of the others.
	Span Span
	At   time.Duration
	// Seq and Accepted are of wrote. Seq is 0 if the resource gave no number.
	Seq      int
	Accepted bool
}

// Writer writes lines. It is a [HoldSink], and safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// NewWriter returns a Writer to out, to which it writes each line in one call, and has
// written the first.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{out: out}
	w.line("%s", firstLine)
	return w
}

func (w *Writer) line(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := fmt.Fprintf(w.out, format+"\n", args...); w.err == nil {
		w.err = err
	}
}

// Err returns why a line could not be written, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Held implements [HoldSink].
func (w *Writer) Held(g Grant, span Span) {
	w.line("held %d %d %d %s", g.Epoch, span.From, span.Until, g.Key)
}

// Released implements [HoldSink].
func (w *Writer) Released(g Grant, at time.Duration) {
	w.line("released %d %d %s", g.Epoch, at, g.Key)
}

// Fenced implements [HoldSink].
func (w *Writer) Fenced(g Grant, at time.Duration) { w.line("fenced %d %d %s", g.Epoch, at, g.Key) }

// Wrote implements [HoldSink].
func (w *Writer) Wrote(a history.Write) {
	word := refused
	if a.Accepted {
		word = accepted
	}
	w.line("wrote %d %d %d %s %s", a.Token, a.Seq, a.At, word, a.Key)
}

// Scan reads lines until in ends, and hands each over. A line that it does not know is
// an error, with its number and the line; nothing after it is read. A last line without
// its end, as of a program that was killed, is left out.
func Scan(in io.Reader, take func(Line)) error {
	reader := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			if n == 1 {
				return fmt.Errorf("it wrote nothing: its first line has to be %q", firstLine)
			}
			return nil
		}
		if err != nil {
			return err
		}
		text = strings.TrimSuffix(text, "\n")
		switch {
		case n == 1 && text != firstLine:
			return fmt.Errorf("its first line is %q and has to be %q", text, firstLine)
		case n == 1 || text == "" || strings.HasPrefix(text, "#"):
			continue
		}
		line, err := parse(text)
		if err != nil {
			return fmt.Errorf("its line %d, %q: %w", n, text, err)
		}
		take(line)
	}
}

func parse(text string) (Line, error) {
	verb, rest, _ := strings.Cut(text, " ")
	line := Line{Verb: verb}
	p := parser{rest: rest}
	switch verb {
	case "held":
		line.Grant.Epoch, line.Span.From, line.Span.Until = p.number("EPOCH"), p.moment("FROM"), p.moment("UNTIL")
	case "released", "fenced":
		line.Grant.Epoch, line.At = p.number("EPOCH"), p.moment("AT")
	case "wrote":
		line.Grant.Epoch = p.number("TOKEN")
		line.Seq, line.At, line.Accepted = p.sequence(), p.moment("AT"), p.decision()
	default:
		return line, errors.New("it has to begin with held, released, fenced or wrote")
	}
	line.Grant.Key = p.rest
	if p.err == nil && p.rest == "" {
		p.err = errors.New("it names no key")
	}
	return line, p.err
}

// parser takes words from the front of a line.
type parser struct {
	rest string
	err  error
}

func (p *parser) word() (word string) {
	word, p.rest, _ = strings.Cut(p.rest, " ")
	return word
}

func (p *parser) fail(name, word, want string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s is %q and has to be %s", name, word, want)
	}
}

func (p *parser) number(name string) uint64 {
	word := p.word()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil || n == 0 {
		p.fail(name, word, "a whole number from 1 on")
	}
	return n
}

func (p *parser) moment(name string) time.Duration {
	word := p.word()
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		p.fail(name, word, "nanoseconds")
	}
	return time.Duration(n)
}

func (p *parser) sequence() int {
	word := p.word()
	if word == "-" {
		return 0
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 {
		p.fail("SEQ", word, "a whole number from 1 on, or -")
	}
	return n
}

func (p *parser) decision() bool {
	word := p.word()
	if word != accepted && word != refused {
		p.fail("the decision", word, "accepted or refused")
	}
	return word == accepted
}
