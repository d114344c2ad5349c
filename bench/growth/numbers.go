package main

import (
	"fmt"
	"strconv"
	"strings"
)

// numbers is a list of numbers as a flag.
type numbers []int

// String implements [flag.Value].
func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set implements [flag.Value].
func (n *numbers) Set(text string) error {
	*n = nil
	last := 0
	for field := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(field)
		if err != nil || v <= last {
			return fmt.Errorf("%q: it must be a number above 0 and above the one before it", field)
		}
		*n, last = append(*n, v), v
	}
	return nil
}

// or returns the list, or the other if nothing was given.
func (n numbers) or(otherwise ...int) []int {
	if len(n) > 0 {
		return n
	}
	return otherwise
}
