package disk

import "time"

// What makes a hang. The watchdog wakes up every wakeInterval, and judges by counting
// its own wake-ups: a process that was stopped, or a machine that was suspended, had
// none meanwhile, and is not taken for one whose disk hangs.
const (
	wakeInterval = 100 * time.Millisecond
	// A leader's disk hangs if in each of the last two windows more than tooBusy of
	// the wake-ups found a call that hangs.
	windowWakes  = 30
	tooBusyWakes = 20
	// A follower's does if one call hangs for this long: it harms nobody but itself,
	// and where all nodes share one disk, one stall must not end them all.
	followerWakes = 300
)

// meter counts wake-ups. It is pure.
type meter struct {
	busy [2 * windowWakes]bool // a ring
	next int
	// streak is how many of the latest wake-ups in a row were busy.
	streak int
}

// wake takes in one wake-up.
func (m *meter) wake(busy bool) {
	m.busy[m.next] = busy
	m.next = (m.next + 1) % len(m.busy)
	m.streak++
	if !busy {
		m.streak = 0
	}
}

// count returns how many wake-ups were busy among the latest windowWakes, and among
// those before.
func (m *meter) count() (latest, before int) {
	for i := range m.busy {
		if !m.busy[(m.next+i)%len(m.busy)] {
			continue
		}
		if i < windowWakes {
			before++
		} else {
			latest++
		}
	}
	return latest, before
}

// hangs returns why a node in the role has to end, nil if it has not.
func (m *meter) hangs(role Role, op string) *HangError {
	latest, before := m.count()
	switch {
	case role == RoleLeader && latest > tooBusyWakes && before > tooBusyWakes:
		return &HangError{Op: op, Role: role, Busy: time.Duration(latest+before) * wakeInterval, Of: 2 * windowWakes * wakeInterval}
	case m.streak >= followerWakes:
		return &HangError{Op: op, Role: role, Busy: followerWakes * wakeInterval, Of: followerWakes * wakeInterval}
	default:
		return nil
	}
}
