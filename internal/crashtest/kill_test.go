package crashtest_test

import (
	"fmt"
	"testing"
)

// All nodes are killed at the same moment under load and started again, ten times:
// every acknowledged grant is there, each epoch was granted once, and the nodes agree.
func TestNothingAcknowledgedIsLostWhenAllAreKilled(t *testing.T) {
	c := startCluster(t, 3)
	for round := range 10 {
		l := c.startLoad(fmt.Sprintf("round%d", round), 16)
		l.waitFor(200)
		c.killAll()
		acked := l.end()
		c.startAll()
		c.ready()
		c.checkKept(acked)
		c.agree()
	}
}
