package lease

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what a caller may ask for. What is outside is refused with an
// [*InvalidError] before anything is proposed; nothing is clamped.
const (
	MaxKeyBytes       = 512
	MaxOwnerBytes     = 256
	MaxRequestIDBytes = 64

	MinTTL = 100 * time.Millisecond
	MaxTTL = 24 * time.Hour

	// MaxAttributes is the number of pairs, MaxAttributeBytes the sum of the
	// lengths of all names and values.
	MaxAttributes     = 32
	MaxAttributeBytes = 4096

	// MaxBatchRenew is how many renewals one BatchRenew may carry.
	MaxBatchRenew = 1000

	// MaxPageSize is how many records or entries one page may have, and
	// DefaultPageSize how many it has if nothing is asked for.
	MaxPageSize     = 1000
	DefaultPageSize = 100
)

// MaxEpoch is the largest epoch. A key that has reached it can never be granted
// again: the next acquire is refused with an [*ExhaustedError], it does not wrap.
const MaxEpoch = 1<<63 - 1

// Validate checks m against the limits and returns an [*InvalidError] that names
// the first field which is outside, or nil.
func (m Mutation) Validate() error {
	if err := ValidateKey(m.Key); err != nil {
		return err
	}
	if err := validateOwner("owner", m.Owner); err != nil {
		return err
	}
	switch m.Op {
	case OpAcquire:
		return m.validateAcquire()
	case OpRenew:
		if err := validateEpoch(m.Epoch); err != nil {
			return err
		}
		return validateTTL(m.TTL)
	case OpRelease, OpForget:
		return validateEpoch(m.Epoch)
	default:
		return &InvalidError{Field: "op", Problem: fmt.Sprintf("%d is unknown", m.Op), Limit: "acquire, renew, release or forget"}
	}
}

func (m Mutation) validateAcquire() error {
	if err := validateTTL(m.TTL); err != nil {
		return err
	}
	if m.RequestID != "" {
		if err := validateText("request_id", m.RequestID, MaxRequestIDBytes); err != nil {
			return err
		}
	}
	return validateAttributes(m.Attributes)
}

// ValidateKey checks a key: 1 to [MaxKeyBytes] bytes of valid UTF-8 without
// control characters.
func ValidateKey(key string) error { return validateText("key", key, MaxKeyBytes) }

// ValidatePrefix checks the prefix of a listing: as a key, but it may be empty,
// and since prefixes are bytes it may end inside a character.
func ValidatePrefix(prefix string) error {
	if len(prefix) > MaxKeyBytes {
		return tooLong("prefix", len(prefix), MaxKeyBytes)
	}
	return nil
}

// PageSize returns the number of items that a page asked for with n has: n itself,
// or [DefaultPageSize] for 0. Anything else is an [*InvalidError].
func PageSize(n int) (int, error) {
	switch {
	case n == 0:
		return DefaultPageSize, nil
	case n < 0 || n > MaxPageSize:
		return 0, &InvalidError{Field: "page_size", Problem: fmt.Sprintf("%d is outside", n), Limit: fmt.Sprintf("1 to %d", MaxPageSize)}
	default:
		return n, nil
	}
}

func validateOwner(field, owner string) error {
	if err := validateText(field, owner, MaxOwnerBytes); err != nil {
		return err
	}
	if strings.TrimSpace(owner) == "" {
		return &InvalidError{Field: field, Problem: "is blank", Limit: fmt.Sprintf("1 to %d bytes, not only white space", MaxOwnerBytes)}
	}
	return nil
}

func validateEpoch(epoch uint64) error {
	if epoch < 1 || epoch > MaxEpoch {
		return &InvalidError{Field: "epoch", Problem: fmt.Sprintf("%d is outside", epoch), Limit: fmt.Sprintf("1 to %d", int64(MaxEpoch))}
	}
	return nil
}

func validateTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL || ttl%time.Millisecond != 0 {
		return &InvalidError{Field: "ttl", Problem: fmt.Sprintf("%v is outside", ttl), Limit: ttlLimit}
	}
	return nil
}

const ttlLimit = "a whole number of milliseconds from 100 (100ms) to 86400000 (24h)"

// TTLOfMillis turns a ttl on the wire into a duration, and refuses one that is
// outside the limits before it could wrap.
func TTLOfMillis(ms int64) (time.Duration, error) {
	if ms < MinTTL.Milliseconds() || ms > MaxTTL.Milliseconds() {
		return 0, &InvalidError{Field: "ttl", Problem: fmt.Sprintf("%d ms is outside", ms), Limit: ttlLimit}
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func validateAttributes(attributes map[string]string) error {
	if len(attributes) > MaxAttributes {
		return &InvalidError{Field: "attributes", Problem: fmt.Sprintf("has %d pairs", len(attributes)), Limit: fmt.Sprintf("at most %d pairs", MaxAttributes)}
	}
	total := 0
	for name, value := range attributes {
		total += len(name) + len(value)
		if name == "" {
			return &InvalidError{Field: "attributes", Problem: "has a pair without a name", Limit: "names of at least 1 byte"}
		}
		if !plain(name) || !plain(value) {
			return &InvalidError{Field: "attributes", Problem: fmt.Sprintf("has the pair %.80q", name+"="+value), Limit: plainLimit}
		}
	}
	if total > MaxAttributeBytes {
		return &InvalidError{Field: "attributes", Problem: fmt.Sprintf("has %d bytes in all", total), Limit: fmt.Sprintf("at most %d bytes of names and values", MaxAttributeBytes)}
	}
	return nil
}

const plainLimit = "valid UTF-8 without control characters"

func validateText(field, s string, most int) error {
	switch {
	case s == "":
		return &InvalidError{Field: field, Problem: "is empty", Limit: fmt.Sprintf("1 to %d bytes", most)}
	case len(s) > most:
		return tooLong(field, len(s), most)
	case !plain(s):
		return &InvalidError{Field: field, Problem: fmt.Sprintf("is %.80q", s), Limit: plainLimit}
	default:
		return nil
	}
}

func tooLong(field string, n, most int) error {
	return &InvalidError{Field: field, Problem: fmt.Sprintf("has %d bytes", n), Limit: fmt.Sprintf("at most %d bytes", most)}
}

// plain reports whether s is valid UTF-8 without control characters (Unicode Cc).
func plain(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}
