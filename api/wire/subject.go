package wire

import "fmt"

// Subject is what a call asks for of a key, as errors of both sides say it: `acquire "k"`.
// It is made into words only for an error.
type Subject struct{ What, Key string }

func (s Subject) String() string { return fmt.Sprintf("%s %q", s.What, s.Key) }

// Renewals is the subject of a batch of so many.
type Renewals int

func (n Renewals) String() string { return fmt.Sprintf("renew %d leases", int(n)) }
