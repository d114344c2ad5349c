package mutants

import "slices"

// Table returns all mutants.
func Table() []Mutant {
	return slices.Concat(rules(), leaders(), identities(), holders(), waits(), failovers())
}

// rules are mutants of the state machine.
func rules() []Mutant {
	const file = "fsm/apply.go"
	return []Mutant{
		{
			Name: "no-term-check", Rule: "an entry stamped in another term than the log's is refused",
			Edits: []Edit{{file, "if e.stamp.Term != m.term {", "if false {"}},
			Test:  "TestALeaderThatComesBack",
		},
		{
			Name: "refused-entry-moves-clock", Rule: "what is refused because of its term does not move the clock",
			Edits: []Edit{{file, "return effects{meta: m, response: &TermError{", "m.now = max(m.now, e.stamp.Reading)\n\t\treturn effects{meta: m, response: &TermError{"}},
			Test:  "TestALeaderThatComesBack",
		},
		{
			Name: "wall-clock-of-proposer", Rule: "the wall time of an opening counts only where the state has no clock yet",
			Edits: []Edit{{file, "\t\treturn effects{meta: m, response: Opened{", "\t\tm.now = max(m.now, lease.Instant(wallNanos(e.opening.Wall)))\n\t\treturn effects{meta: m, response: Opened{"}},
			Test:  Seeds,
		},
		{
			Name: "constant-epoch", Rule: "every grant has the next epoch",
			Edits: []Edit{
				{file, "s.record.Epoch++", "s.record.Epoch = max(1, s.record.Epoch)"},
				{file, "case record.Epoch == old.Epoch && record.Owner != old.Owner:", "case false:"},
			},
			Test: Seeds,
		},
		{
			Name: "renew-for-anyone", Rule: "only the owner renews",
			Edits: []Edit{{file, "return s.before != nil && s.record.Owner == s.mutation.Owner && s.record.Epoch", "return s.before != nil && s.record.Epoch"}},
			Test:  Seeds,
		},
		{
			Name: "renew-after-the-end", Rule: "a lease that is over is not renewed",
			Edits: []Edit{{file, "if !s.current() || s.record.OverAt(s.draft.meta.now) {", "if !s.current() {"}},
			Test:  Seeds,
		},
	}
}

// leaders are mutants of how a leader keeps the clock and proves that it leads.
func leaders() []Mutant {
	const (
		lead      = "raftnet/lead.go"
		propose   = "raftnet/propose.go"
		transport = "raftnet/transport.go"
	)
	return []Mutant{
		{
			Name: "clock-anchored-early", Rule: "the leader's clock is noted only after the opening's answer",
			Edits: []Edit{
				{lead, "\tentry := fsm.EncodeOpening(", "\tanchor := n.cfg.Clock.Monotonic()\n\tentry := fsm.EncodeOpening("},
				{lead, "anchor: n.cfg.Clock.Monotonic()}", "anchor: anchor}"},
			},
			Test: "TestAnOpeningThatComesLate",
		},
		{
			Name: "batch-stamped-when-it-opens", Rule: "the reading is taken after the last mutation has joined",
			Edits: []Edit{
				{propose, "\tvar patient <-chan time.Time\n", "\tvar patient <-chan time.Time\n\tvar opened time.Duration\n"},
				{propose, "\t\t\tif !n.mayFollow() {\n", "\t\t\tif opened == 0 {\n\t\t\t\topened = n.cfg.Clock.Monotonic()\n\t\t\t}\n\t\t\tif !n.mayFollow() {\n"},
				{propose, "\t\t\tn.proposeEntry()\n", "\t\t\tn.proposeEntry(opened)\n\t\t\topened = 0\n"},
				{propose, "func (n *Node) proposeEntry() {", "func (n *Node) proposeEntry(opened time.Duration) {"},
				{propose, "r.reading(n.cfg.Clock.Monotonic()), Term", "r.reading(opened), Term"},
			},
			Test: "TestABatchThatWaits",
		},
		{
			Name: "no-tick-before-a-read", Rule: "a read that calls a lease over writes the clock first",
			Edits: []Edit{{"api/sight.go", "case seen.settled(reading):", "case true:"}},
			Test:  "TestAReadThatCallsALeaseOver",
		},
		{
			Name: "earlier-answers-confirm", Rule: "only answers to requests sent after the read count (trap C)",
			Edits: []Edit{{transport, "a.term == r.term && a.sent > r.after", "a.term == r.term"}},
			Test:  "TestADeposedLeaderIsRead",
		},
		{
			Name: "verify-leader-confirms", Rule: "raft's VerifyLeader is no proof (trap C)",
			Edits: []Edit{{"raftnet/confirm.go", "err := n.runRound(prompt)", "err := n.await(n.ctx, n.raft.VerifyLeader())"}},
			Test:  "TestADeposedLeaderIsAskedToVerify",
		},
		{
			Name: "heartbeat-fast-path", Rule: "heartbeats go through raft's main loop (trap B)",
			Edits: []Edit{{transport, "func (w *witness) SetHeartbeatHandler(func(raft.RPC)) {}", "func (w *witness) SetHeartbeatHandler(f func(raft.RPC)) { w.Transport.SetHeartbeatHandler(f) }"}},
			Test:  "TestAHeartbeatInTheMidst",
		},
	}
}

// identities are mutants of who a node is.
func identities() []Mutant {
	const (
		judge = "raftnet/judge.go"
		found = "raftnet/found.go"
	)
	return []Mutant{
		{
			Name: "wiped-disk-accepted", Rule: "a wiped disk under an old name is refused",
			Edits: []Edit{
				{judge, "case h.Incarnation != member.Incarnation:", "case false && h.Incarnation != member.Incarnation:"},
				{judge, "case h.Starts < seen.Starts:", "case false && h.Starts < seen.Starts:"},
				{judge, "case h.Starts == seen.Starts && h.Boot != seen.Boot:", "case false && h.Boot != seen.Boot:"},
				{found, "case listed && own.Incarnation == f.identity.Incarnation:", "case listed && own.Incarnation != \"\":"},
			},
			Test: "TestAWipedNodeComesBack",
		},
		{
			Name: "founded-by-a-majority", Rule: "a cluster is founded only when all have met all",
			Edits: []Edit{
				{found, "if len(f.met) != len(f.list) {", "if 2*len(f.met) <= len(f.list) {"},
				{found, "if id != f.identity.ID && !maps.Equal(f.views[id].Met, f.met) {\n\t\t\treturn", "if f.met[id] != \"\" && id != f.identity.ID && !maps.Equal(f.views[id].Met, f.met) {\n\t\t\treturn"},
			},
			Test: "TestAWipedMajority",
		},
	}
}

// holders are mutants of how a holder counts.
func holders() []Mutant {
	const ask = "holder/sent.go"
	return []Mutant{
		{
			Name: "counted-from-the-receipt", Rule: "a holder counts from the send, not from the answer",
			Edits: []Edit{{ask, "each try\n\t\treturn time.Duration(record.at.Load())", "each try\n\t\treturn h.clock.Monotonic()"}},
			Test:  "TestAnAnswerThatComesLate",
		},
		{
			Name: "counted-without-what-remains", Rule: "a holder counts what the answer says remains, not the ttl that it asked for",
			Edits: []Edit{{"holder/holder.go", "remaining: min(answer.Remaining, h.terms.ttl)}); err != nil {", "remaining: h.terms.ttl}); err != nil {"}},
			Test:  "TestAnAcquireThatIsAnsweredTheSecondTime",
		},
	}
}
