// Package mutants has the rules of the product that simulation must not let anybody
// leave out: each mutant is the product with one rule left out or turned round, and
// has to be caught. The product has no hooks for that: its source is replaced while it
// is compiled, by the -overlay of the go command.
//
// Read the table to see which rules are covered, and by what; a mutant whose old text
// is not found exactly once in its file is out of date, and fails the test.
package mutants
