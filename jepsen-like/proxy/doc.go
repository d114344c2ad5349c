// Package proxy stands between two ends of TCP connections and does to what they say
// what a bad network does.
//
// A [Line] is one direction between two machines; it has the state that all connections
// between the two obey in that direction, whoever dialed them. A [Proxy] is one listener
// in front of one address, with a line for each direction.
//
// A proxy refuses connections when nothing listens behind it, as far as a program can:
// its own listener is closed then. What it can not do is to lose the packets that open a
// connection: a new connection through a cut line is accepted by the kernel, and hears
// nothing. Bytes that the kernel has taken when a line is cut are held, not lost, as TCP
// would send them again.
package proxy
