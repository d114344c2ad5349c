package main

import (
	"fmt"

	"github.com/leasenode/leasenode/lease"
)

// inTheWay tells who waits for what: the lease in the way, and the place in line if
// there is one.
func inTheWay(held lease.HeldError) string {
	text := fmt.Sprintf("held by %q at epoch %d, for another %s unless renewed", held.Record.Owner, held.Record.Epoch, length(held.Remaining))
	switch {
	case held.Place == 1:
		text += "; you are next"
	case held.Place > 1:
		text += fmt.Sprintf("; you are %s in line", ordinal(held.Place))
	}
	return text
}

// ordinal returns 1st, 2nd, 3rd, 4th, 11th, 21st and so on.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}
