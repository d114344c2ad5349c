// Package measure puts a closed loop of calls on a system and says what came of it: a
// rate, latencies, the time without a success. It knows no system and no protocol.
//
// It promises nothing about the machine: whatever else runs on it is in the figures.
// That is why figures are compared only with others of the same run, taken in turns.
// Start reading at [Load.Run].
package measure
