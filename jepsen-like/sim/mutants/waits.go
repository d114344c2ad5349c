package mutants

// waits are mutants of how keys are handed over to who waits.
func waits() []Mutant {
	const (
		handover = "raftnet/handover.go"
		line     = "raftnet/line.go"
		wait     = "holder/wait.go"
		long     = "TestAHandOverThatTakesLong"
		later    = "TestAGrantThatALaterPollIsToldOf"
	)
	return []Mutant{
		{
			Name: "latest-poll-is-answered", Rule: "a grant is told to the poll that was in the entry, and to no later one",
			Edits: []Edit{{handover, "\t\tls.answer(p, outcome)\n\t\tw.told = true\n", "\t\tif latest := w.newest(); latest != nil {\n\t\t\tp = latest\n\t\t}\n\t\tls.answer(p, outcome)\n\t\tw.told = true\n"}},
			Test:  long,
		},
		{
			Name: "wait-counted-from-the-receipt", Rule: "a lease that was waited for counts from the sending of a poll, not from the answer",
			Edits: []Edit{{wait, "noteSendAt(ctx, r.sentAt)", "noteSendAt(ctx, sendTime(ctx))"}},
			Test:  long,
		},
		{
			Name: "wait-counted-from-the-newest-poll", Rule: "a lease that was waited for counts from the sending of the poll that was granted",
			Edits: []Edit{
				{wait, "\tsent     int // the number of the latest poll\n", "\tsent     int // the number of the latest poll\n\tnewest   time.Duration\n"},
				{wait, "\tw.out++\n", "\tw.out++\n\tw.newest = sendTime(life)\n"},
				{wait, "noteSendAt(ctx, r.sentAt)", "noteSendAt(ctx, w.newest)"},
			},
			Test: long,
		},
		{
			Name: "given-back-though-told", Rule: "a grant that a later poll was told of is not given back",
			Edits: []Edit{{line, "w.grant != nil && !w.told && !w.claimed", "w.grant != nil && !w.claimed"}},
			Test:  later,
		},
		{
			Name: "given-back-though-claimed", Rule: "a grant that another acquire may be told of is not given back",
			Edits: []Edit{{line, "w.grant != nil && !w.told && !w.claimed", "w.grant != nil && !w.told"}},
			Test:  "TestAGrantThatAnAcquireIsToldOf",
		},
	}
}

// failovers are mutants of when a node takes the place of a leader that looks gone.
func failovers() []Mutant {
	return []Mutant{
		{
			Name: "suspicion-is-enough", Rule: "a leader is gone when a majority finds so, and not one node",
			Edits: []Edit{{"raftnet/suspect.go", "rank, agreed := p.hear(ctx, s)", "rank, agreed := 0, true"}},
			Test:  "TestOneLinkThatRefuses",
		},
	}
}
