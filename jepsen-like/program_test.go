package main

import (
	"testing"
)

func TestAProgramThatIsRightPasses(t *testing.T) {
	t.Parallel()
	programsOf(t)
	r := chaosWith(t, t.Context(), "--workload-command", built.example, "--workload-keys", "2", "--workload-instances", "2",
		"--clients", "1", "--time", "9s", "--seed", "6", "--faults", "pause-holder,kill-leader")
	r.expect(t, exitPass, "PASS", "4 holders", "--workload-command "+built.example)
}

func TestAProgramThatBelievesTooLongIsCaught(t *testing.T) {
	t.Parallel()
	programsOf(t)
	r := chaosWith(t, t.Context(), "--workload-command", built.example+" --believes-too-long 800ms",
		"--clients", "0", "--time", "7s", "--seed", "6", "--faults", "none")
	r.expect(t, exitFail, "  fail     exclusion", "two hold for")
}

func TestAProgramThatCannotBeJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, says string }{
		{"echo hello", `h1 cannot be judged: its first line is "hello" and has to be "leasenode-workload 1"`},
		{"false", "ended by itself: exit status 1"},
		{"/no/such/program", "start /no/such/program"},
	} {
		chaosWith(t, t.Context(), "--workload-command", c.command, "--clients", "0", "--time", "1s", "--faults", "none").
			expect(t, exitBroke, c.says)
	}
}
