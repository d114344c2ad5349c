package holder

import "testing"

// Polls have connections of their own, each with room for fewer than a node takes.
func TestPollsHaveConnectionsOfTheirOwn(t *testing.T) {
	c, err := newConns([]string{"127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.close() }()
	other, err := c.pick()
	if err != nil {
		t.Fatal(err)
	}
	polls := map[any]int{}
	var done []func()
	for range 2*maxLaneCalls + 1 {
		target, end, err := c.pickWaiting()
		if err != nil {
			t.Fatal(err)
		}
		polls[target.conn]++
		done = append(done, end)
	}
	if len(polls) != 3 || polls[other.conn] != 0 {
		t.Errorf("%d connections for polls; %d of them on that for the rest", len(polls), polls[other.conn])
	}
	for _, n := range polls {
		if n > 500 { // two polls of a waiter overlap, and a node takes 1,000 calls
			t.Errorf("%d polls on one connection", n)
		}
	}
	for _, end := range done {
		end()
	}
	if target, end, err := c.pickWaiting(); err != nil || polls[target.conn] == 0 {
		t.Errorf("a new connection though there is room: %v", err)
	} else {
		end()
	}
}
