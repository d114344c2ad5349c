//go:build !race

package check_test

const lieEvery = 1
