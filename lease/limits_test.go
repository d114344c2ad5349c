package lease_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// limitCase is a value on one side of a limit. It is refused if field is set, and
// then the error names that field and contains limit.
type limitCase struct {
	mutation lease.Mutation
	field    string
	limit    string
}

func acquire() lease.Mutation {
	return lease.Mutation{Op: lease.OpAcquire, Key: "k", Owner: "o", TTL: time.Second}
}

func with(change func(*lease.Mutation)) lease.Mutation {
	m := acquire()
	change(&m)
	return m
}

func key(k string) lease.Mutation    { return with(func(m *lease.Mutation) { m.Key = k }) }
func owner(o string) lease.Mutation  { return with(func(m *lease.Mutation) { m.Owner = o }) }
func reqID(id string) lease.Mutation { return with(func(m *lease.Mutation) { m.RequestID = id }) }
func ttl(d time.Duration) lease.Mutation {
	return with(func(m *lease.Mutation) { m.TTL = d })
}

func attributes(a map[string]string) lease.Mutation {
	return with(func(m *lease.Mutation) { m.Attributes = a })
}

func epoch(op lease.Op, n uint64) lease.Mutation {
	return with(func(m *lease.Mutation) { m.Op, m.Epoch = op, n })
}

// pairs returns n pairs of 2 bytes of name and size-2 bytes of value.
func pairs(n, size int) map[string]string {
	a := map[string]string{}
	for i := range n {
		a[fmt.Sprintf("%02d", i)] = strings.Repeat("v", size-2)
	}
	return a
}

func TestMutationValidate(t *testing.T) {
	for name, cases := range map[string]map[string]limitCase{
		"key": textCases("key", 512, key), "owner": textCases("owner", 256, owner), "request_id": requestIDCases(),
		"blank owner": blankOwners(), "ttl": ttlCases(), "attributes": attributeCases(), "epoch": epochCases(),
		"op": {
			"none":    {epoch(0, 1), "op", "acquire"},
			"unknown": {epoch(99, 1), "op", "acquire"},
		},
	} {
		for side, c := range cases {
			t.Run(name+"/"+side, func(t *testing.T) { c.check(t) })
		}
	}
}

func (c limitCase) check(t *testing.T) {
	t.Helper()
	err := c.mutation.Validate()
	if c.field == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	wantInvalid(t, err, c.field, c.limit)
}

func wantInvalid(t *testing.T, err error, field, limit string) {
	t.Helper()
	var invalid *lease.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an InvalidError of %s", err, field)
	}
	if invalid.Field != field || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), invalid.Limit) {
		t.Errorf("got %q of field %q, want it to name %q and the limit", err, invalid.Field, field)
	}
	if !strings.Contains(invalid.Limit, limit) {
		t.Errorf("the limit is %q, want it to say %q", invalid.Limit, limit)
	}
	if got := lease.CodeOf(err); got != lease.CodeInvalid {
		t.Errorf("code is %q", got)
	}
}

func textCases(field string, most int, set func(string) lease.Mutation) map[string]limitCase {
	return map[string]limitCase{
		"one byte":             {set("x"), "", ""},
		"longest":              {set(strings.Repeat("x", most)), "", ""},
		"longest, two bytes":   {set(strings.Repeat("é", most/2)), "", ""},
		"beyond the BMP":       {set("😀"), "", ""},
		"slashes and spaces":   {set(" /a//b/ c"), "", ""},
		"no-break space, U+A0": {set("a\u00a0b"), "", ""},
		"too long":             {set(strings.Repeat("x", most+1)), field, fmt.Sprint(most)},
		"too long in bytes":    {set(strings.Repeat("é", most/2) + "x"), field, fmt.Sprint(most)},
		"empty":                {set(""), field, fmt.Sprint(most)},
		"NUL":                  {set("a\x00b"), field, "control"},
		"line feed at end":     {set("a\n"), field, "control"},
		"tab":                  {set("a\tb"), field, "control"},
		"DEL":                  {set("a\x7f"), field, "control"},
		"C1 control U+85":      {set("a\u0085"), field, "control"},
		"not UTF-8":            {set("a\xff"), field, "UTF-8"},
		"surrogate":            {set("a\xed\xa0\x80"), field, "UTF-8"},
		"overlong NUL":         {set("a\xc0\x80"), field, "UTF-8"},
	}
}

// An absent request id is none, not an invalid one.
func requestIDCases() map[string]limitCase {
	cases := textCases("request_id", 64, reqID)
	cases["empty"] = limitCase{reqID(""), "", ""}
	return cases
}

func blankOwners() map[string]limitCase {
	return map[string]limitCase{
		"spaces":          {owner("   "), "owner", "white space"},
		"no-break spaces": {owner("\u00a0\u2003"), "owner", "white space"},
		"padded":          {owner(" o "), "", ""},
	}
}

func ttlCases() map[string]limitCase {
	const limit = "100ms"
	return map[string]limitCase{
		"shortest":             {ttl(100 * time.Millisecond), "", ""},
		"longest":              {ttl(24 * time.Hour), "", ""},
		"an odd millisecond":   {ttl(12345 * time.Millisecond), "", ""},
		"below":                {ttl(99 * time.Millisecond), "ttl", limit},
		"just below":           {ttl(100*time.Millisecond - 1), "ttl", limit},
		"above":                {ttl(24*time.Hour + time.Millisecond), "ttl", "24h"},
		"just above":           {ttl(24*time.Hour + 1), "ttl", "24h"},
		"not whole":            {ttl(time.Second + time.Microsecond), "ttl", "whole number of milliseconds"},
		"zero":                 {ttl(0), "ttl", limit},
		"one nanosecond":       {ttl(1), "ttl", limit},
		"negative":             {ttl(-time.Second), "ttl", limit},
		"largest":              {ttl(math.MaxInt64), "ttl", limit},
		"smallest":             {ttl(math.MinInt64), "ttl", limit},
		"renew, below":         {with(func(m *lease.Mutation) { m.Op, m.Epoch, m.TTL = lease.OpRenew, 1, 99*time.Millisecond }), "ttl", limit},
		"renew, shortest":      {with(func(m *lease.Mutation) { m.Op, m.Epoch, m.TTL = lease.OpRenew, 1, 100*time.Millisecond }), "", ""},
		"release has no limit": {with(func(m *lease.Mutation) { m.Op, m.Epoch, m.TTL = lease.OpRelease, 1, 0 }), "", ""},
		"forget has no limit":  {with(func(m *lease.Mutation) { m.Op, m.Epoch, m.TTL = lease.OpForget, 1, 0 }), "", ""},
	}
}

func attributeCases() map[string]limitCase {
	return map[string]limitCase{
		"none":            {attributes(nil), "", ""},
		"32 pairs":        {attributes(pairs(32, 3)), "", ""},
		"33 pairs":        {attributes(pairs(33, 3)), "attributes", "32"},
		"4096 bytes":      {attributes(pairs(32, 128)), "", ""},
		"4097 bytes":      {attributes(map[string]string{"n": strings.Repeat("v", 4096)}), "attributes", "4096"},
		"name counts":     {attributes(map[string]string{strings.Repeat("n", 4097): ""}), "attributes", "4096"},
		"empty value":     {attributes(map[string]string{"n": ""}), "", ""},
		"empty name":      {attributes(map[string]string{"": "v"}), "attributes", "name"},
		"NUL in name":     {attributes(map[string]string{"a\x00": "v"}), "attributes", "control"},
		"NUL in value":    {attributes(map[string]string{"a": "v\x00"}), "attributes", "control"},
		"not UTF-8 name":  {attributes(map[string]string{"\xff": "v"}), "attributes", "UTF-8"},
		"not UTF-8 value": {attributes(map[string]string{"a": "\xff"}), "attributes", "UTF-8"},
	}
}

func epochCases() map[string]limitCase {
	cases := map[string]limitCase{}
	for _, op := range []lease.Op{lease.OpRenew, lease.OpRelease, lease.OpForget} {
		cases[op.String()+", first"] = limitCase{epoch(op, 1), "", ""}
		cases[op.String()+", largest"] = limitCase{epoch(op, math.MaxInt64), "", ""}
		cases[op.String()+", zero"] = limitCase{epoch(op, 0), "epoch", "1 to 9223372036854775807"}
		cases[op.String()+", beyond"] = limitCase{epoch(op, math.MaxInt64+1), "epoch", "1 to 9223372036854775807"}
	}
	return cases
}

func TestMutationValidateNamesTheFirstField(t *testing.T) {
	m := lease.Mutation{Op: lease.OpAcquire}
	wantInvalid(t, m.Validate(), "key", "1 to 512 bytes")
	m.Key = "k"
	wantInvalid(t, m.Validate(), "owner", "1 to 256 bytes")
	m.Owner = "o"
	wantInvalid(t, m.Validate(), "ttl", "100ms")
}

// A refusal of something huge has to stay readable.
func TestInvalidErrorIsShort(t *testing.T) {
	for name, m := range map[string]lease.Mutation{
		"value": attributes(map[string]string{"a": strings.Repeat("\x00", 1<<20)}),
		"key":   key(strings.Repeat("\x01", 512)),
	} {
		if err := m.Validate(); err == nil || len(err.Error()) > 600 {
			t.Errorf("%s: %d bytes of error", name, len(err.Error()))
		}
	}
}

func TestValidateKeyAndPrefix(t *testing.T) {
	if err := lease.ValidateKey(strings.Repeat("k", 512)); err != nil {
		t.Error(err)
	}
	wantInvalid(t, lease.ValidateKey(strings.Repeat("k", 513)), "key", "512")
	wantInvalid(t, lease.ValidateKey(""), "key", "1 to 512")
	for _, good := range []string{"", "a", "\xc3", strings.Repeat("k", 512)} {
		if err := lease.ValidatePrefix(good); err != nil {
			t.Errorf("prefix %.10q: %v", good, err)
		}
	}
	wantInvalid(t, lease.ValidatePrefix(strings.Repeat("k", 513)), "prefix", "512")
}

func TestPageSize(t *testing.T) {
	for n, want := range map[int]int{0: 100, 1: 1, 100: 100, 1000: 1000} {
		if got, err := lease.PageSize(n); err != nil || got != want {
			t.Errorf("PageSize(%d) = %d, %v, want %d", n, got, err, want)
		}
	}
	for _, n := range []int{-1, 1001, math.MinInt, math.MaxInt} {
		_, err := lease.PageSize(n)
		wantInvalid(t, err, "page_size", "1 to 1000")
	}
}

func TestTTLOfMillis(t *testing.T) {
	for ms, want := range map[int64]time.Duration{100: 100 * time.Millisecond, 12345: 12345 * time.Millisecond, 86_400_000: 24 * time.Hour} {
		if got, err := lease.TTLOfMillis(ms); err != nil || got != want {
			t.Errorf("TTLOfMillis(%d) = %v, %v, want %v", ms, got, err, want)
		}
	}
	// The last one is 2^64 nanoseconds and a second more: multiplied first, it would
	// wrap to within the limits.
	for _, ms := range []int64{-1, 0, 1, 99, 86_400_001, math.MaxInt64, math.MinInt64, 18446744074710} {
		_, err := lease.TTLOfMillis(ms)
		wantInvalid(t, err, "ttl", "100ms")
	}
}
