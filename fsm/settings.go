package fsm

import "fmt"

// Settings are the bounds that are part of the replicated state, so that all
// nodes trim and refuse alike. They arrive with the opening entry of the first
// term and are ignored in later ones.
type Settings struct {
	// MaxKeys is how many keys there may be: an acquire of one more is refused.
	MaxKeys uint64
	// HistoryGrants is how many grants of a key are remembered, with everything of
	// their epochs: 1 to [MaxHistoryPerKey]. A request id is remembered as long.
	HistoryGrants uint64
	// HistoryRenewals is how many renewals of a key are remembered among those
	// grants: 1 to [MaxHistoryPerKey].
	HistoryRenewals uint64
	// HistoryOperations is how many operations the listing of all keys reaches back:
	// so many renewals, and so many of the others, so that renewals push out no grant.
	// Log entries go as a whole, and the latest one always stays.
	HistoryOperations uint64
}

// MaxHistoryPerKey bounds HistoryGrants and HistoryRenewals, since a key's history
// is written anew with each of its changes.
const MaxHistoryPerKey = 1024

// DefaultSettings returns the settings of a cluster that was told nothing else.
func DefaultSettings() Settings {
	return Settings{MaxKeys: 10_000_000, HistoryGrants: 16, HistoryRenewals: 8, HistoryOperations: 1_000_000}
}

// Validate returns an error that names the first field which is outside its
// bounds, or nil.
func (s Settings) Validate() error {
	fields := []struct {
		name        string
		value, most uint64
	}{
		{"MaxKeys", s.MaxKeys, maxCount},
		{"HistoryGrants", s.HistoryGrants, MaxHistoryPerKey},
		{"HistoryRenewals", s.HistoryRenewals, MaxHistoryPerKey},
		{"HistoryOperations", s.HistoryOperations, maxCount},
	}
	for _, f := range fields {
		if f.value < 1 || f.value > f.most {
			return fmt.Errorf("%s is %d: it must be 1 to %d", f.name, f.value, f.most)
		}
	}
	return nil
}

// maxCount keeps sums of counts from wrapping.
const maxCount = 1 << 62

// withDefaults returns s with the default in place of each 0.
func (s Settings) withDefaults() Settings {
	d := DefaultSettings()
	for _, f := range []struct{ value, standard *uint64 }{
		{&s.MaxKeys, &d.MaxKeys},
		{&s.HistoryGrants, &d.HistoryGrants},
		{&s.HistoryRenewals, &d.HistoryRenewals},
		{&s.HistoryOperations, &d.HistoryOperations},
	} {
		if *f.value == 0 {
			*f.value = *f.standard
		}
	}
	return s
}
