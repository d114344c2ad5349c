package history

import (
	"time"

	"github.com/leasenode/leasenode/lease"
)

// Mark is what a [Watched] is.
type Mark string

// The marks.
const (
	// WatchBegan: the watcher is there. It is the first that there is of each.
	WatchBegan Mark = "began"
	// WatchReset: a listing. It is the state at Index, when the clock was At; its records
	// follow, each as WatchListed, a key perhaps more than once. What was told before is
	// void, and what comes after Index is told from here on.
	WatchReset  Mark = "reset"
	WatchListed Mark = "listed"
	// WatchTold: an event.
	WatchTold Mark = "told"
	// WatchReached: everything up to Index was told; the clock was At then.
	WatchReached Mark = "reached"
	// WatchRefused: the store would not go on after Index, for the reason in Error, which
	// is none of those that it may have.
	WatchRefused Mark = "refused"
)

// Watched is one thing that a watcher was told.
type Watched struct {
	Watcher string `json:"watcher"`
	// Seq numbers what one watcher was told: 1, 2, 3 and on.
	Seq int `json:"seq"`
	// Node is where it was told, "" if the watcher asks any.
	Node string `json:"node,omitempty"`
	Mark Mark   `json:"mark"`
	// Renewals says that the watcher has asked for renewals.
	Renewals bool `json:"renewals,omitempty"`

	// Event is the kind of event, as [lease.EventKind.String] has it.
	Event      string        `json:"event,omitempty"`
	Key        string        `json:"key,omitempty"`
	Owner      string        `json:"owner,omitempty"`
	Epoch      uint64        `json:"epoch,omitempty"`
	LeaseUntil lease.Instant `json:"lease_until,omitempty"`
	Floor      uint64        `json:"forgotten_at_epoch,omitempty"`
	Index      uint64        `json:"index,omitempty"`
	At         lease.Instant `json:"at,omitempty"` // of the cluster clock
	Error      string        `json:"error,omitempty"`

	// When is when it was told, on the harness's clock.
	When time.Duration `json:"when"`
}
