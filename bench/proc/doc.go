// Package proc runs the processes that are measured, reads what they cost, and describes
// the machine. It is for Linux: it reads /proc.
//
// A process that it starts is killed when this one dies, however that comes about.
// There is no clean stop: what is measured here is thrown away.
package proc
