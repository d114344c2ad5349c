// Package arrows has no code, only the test of which package may import which.
package arrows
