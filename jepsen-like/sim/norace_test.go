//go:build !race

package sim_test

// defaultSeeds is how many seeds run if nothing is said.
const defaultSeeds = 100
