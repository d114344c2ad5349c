package leasetest

func forgetChecks() []Check {
	return []Check{
		{"only the holder of an unexpired lease sets the floor", onlyTheHolderForgets},
		{"the floor outlives its holder and never goes back", floorStays},
		{"forgetting again changes nothing", forgetIsIdempotent},
	}
}

func onlyTheHolderForgets(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	t.lost(a.forget(1))
	a.granted(1)
	t.lost(b.forget(1))
	t.lost(a.forget(2))
	t.advance(ttl)
	t.lost(a.forget(1))
	t.shows(a.read(), state{owner: "a", epoch: 1})
	b.granted(2)
	t.lost(a.forget(1))
	t.lost(a.forget(2))
	t.done(b.release(2))
	t.lost(b.forget(2))
	t.shows(b.read(), state{owner: "b", epoch: 2})
}

func floorStays(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	forgot := t.done(a.forget(1))
	t.shows(forgot, state{owner: "a", epoch: 1, left: ttl, floor: 1})
	t.changed(forgot)
	t.shows(t.done(a.renew(1)), state{owner: "a", epoch: 1, left: ttl, floor: 1})
	t.shows(t.done(a.release(1)), state{owner: "a", epoch: 1, floor: 1})
	equal(t, "floor at the next grant", b.granted(2).Record.ForgottenAtEpoch, 1)
	t.shows(b.read(), state{owner: "b", epoch: 2, left: ttl, floor: 1})
	t.lost(a.forget(1))
	t.shows(t.done(b.forget(2)), state{owner: "b", epoch: 2, left: ttl, floor: 2})
	t.lost(a.forget(1))
	t.advance(ttl)
	equal(t, "floor after an expiry", a.granted(3).Record.ForgottenAtEpoch, 2)
	t.shows(a.read(), state{owner: "a", epoch: 3, left: ttl, floor: 2})
}

func forgetIsIdempotent(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	t.done(a.forget(1))
	again := t.done(a.forget(1))
	t.shows(again, state{owner: "a", epoch: 1, left: ttl, floor: 1})
	equal(t, "changed", again.Changed, false)
	equal(t, "number of entries", len(a.history()), 2)
}
