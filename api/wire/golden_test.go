package wire_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasenode/leasenode/api/leasepb"
)

var update = flag.Bool("update", false, "add the messages that are missing to the file in testdata; none that is there is changed")

const goldenFile = "testdata/messages.txt"

const goldenHeader = `# Messages as they were written when they were added here. Clients and nodes of all
# versions have to read them as what they are, for ever: add to this file (-update),
# change nothing.
`

// golden is a message that is kept in testdata.
type golden struct {
	name    string
	written proto.Message // as this version writes it
	want    any           // what it has to be read as
	// read reads a message of the type of written.
	read func(proto.Message) (any, error)
}

// message is a golden message of which read makes want.
func message[M proto.Message, V any](name string, written M, read func(M) (V, error), want V) golden {
	return golden{name: name, written: written, want: want, read: func(m proto.Message) (any, error) { return read(m.(M)) }}
}

// unread is a golden message that package wire does not read: its fields are what counts.
func unread[M proto.Message](name string, written M) golden {
	return golden{name: name, written: written, want: nil, read: func(proto.Message) (any, error) { return nil, nil }}
}

// load returns the messages in testdata, by name.
func load(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	kept := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, digits, _ := strings.Cut(line, ":")
		data, err := hex.DecodeString(strings.TrimSpace(digits))
		if _, twice := kept[name]; twice || err != nil {
			t.Fatalf("%s: the line of %q is bad: %v", goldenFile, name, err)
		}
		kept[name] = data
	}
	return kept
}

// add writes the messages that are missing.
func add(t *testing.T, kept map[string][]byte) {
	t.Helper()
	var missing strings.Builder
	if len(kept) == 0 {
		missing.WriteString(goldenHeader)
	}
	for _, g := range goldens() {
		if _, ok := kept[g.name]; ok {
			continue
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.written)
		if err != nil {
			t.Fatal(err)
		}
		kept[g.name] = data
		fmt.Fprintf(&missing, "%s: %x\n", g.name, data)
	}
	file, err := os.OpenFile(goldenFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(missing.String()); err != nil {
		t.Fatal(err)
	}
}

// TestMessagesAreWhatTheyAlwaysWere reads what is in testdata, and holds that this
// version writes the same: the same fields, not the same order of bytes.
func TestMessagesAreWhatTheyAlwaysWere(t *testing.T) {
	kept := load(t)
	if *update {
		add(t, kept)
	}
	for _, g := range goldens() {
		data, ok := kept[g.name]
		if !ok {
			t.Errorf("%s is not in %s: run this with -update", g.name, goldenFile)
			continue
		}
		delete(kept, g.name)
		m := g.written.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(data, m); err != nil {
			t.Errorf("%s: %v", g.name, err)
			continue
		}
		if !sameMessage(m, g.written) {
			t.Errorf("%s was written as\n%v\nand now as\n%v", g.name, m, g.written)
		}
		if got, err := g.read(m); err != nil || !reflect.DeepEqual(got, g.want) {
			t.Errorf("%s is read as\n%#v, %v\nwant\n%#v", g.name, got, err, g.want)
		}
	}
	for name := range kept {
		t.Errorf("%s is in %s and is not tested", name, goldenFile)
	}
}

// sameMessage compares the details of a status one by one: they are bytes in it, in
// which the order of a map is anyone's guess. Its text is for people, and may change.
func sameMessage(a, b proto.Message) bool {
	s, ok := a.(*spb.Status)
	if !ok {
		return proto.Equal(a, b)
	}
	u := b.(*spb.Status)
	if s.GetCode() != u.GetCode() || len(s.GetDetails()) != len(u.GetDetails()) {
		return false
	}
	for i := range s.GetDetails() {
		x, xerr := s.GetDetails()[i].UnmarshalNew()
		y, yerr := u.GetDetails()[i].UnmarshalNew()
		if xerr != nil || yerr != nil || !proto.Equal(x, y) {
			return false
		}
	}
	return true
}

// TestEveryFieldIsInAGoldenMessage has a field that is added to the interface be added
// to the golden messages.
func TestEveryFieldIsInAGoldenMessage(t *testing.T) {
	set := map[protoreflect.FullName]bool{}
	for _, g := range goldens() {
		collect(g.written.ProtoReflect(), set)
	}
	messages := leasepb.File_leasepb_lease_proto.Messages()
	for i := range messages.Len() {
		wantFields(t, messages.Get(i), set)
	}
}

func wantFields(t *testing.T, m protoreflect.MessageDescriptor, set map[protoreflect.FullName]bool) {
	for i := range m.Fields().Len() {
		if name := m.Fields().Get(i).FullName(); !m.IsMapEntry() && !set[name] {
			t.Errorf("%s is in no golden message", name)
		}
	}
	for i := range m.Messages().Len() {
		wantFields(t, m.Messages().Get(i), set)
	}
	if !set[m.FullName()] && !m.IsMapEntry() {
		t.Errorf("%s is no golden message, and in none", m.FullName())
	}
}

// collect notes the message, its fields, and those in it.
func collect(m protoreflect.Message, set map[protoreflect.FullName]bool) {
	set[m.Descriptor().FullName()] = true
	if s, ok := m.Interface().(*spb.Status); ok {
		for _, detail := range s.GetDetails() {
			if inner, err := detail.UnmarshalNew(); err == nil {
				collect(inner.ProtoReflect(), set)
			}
		}
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		set[field.FullName()] = true
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				collect(value.List().Get(i).Message(), set)
			}
		default:
			collect(value.Message(), set)
		}
		return true
	})
}
