package check_test

import "path"

// exception is lies that may pass, as [path.Match] has it, and why: what they say is
// true of a run that kept its promises as well, as far as anybody recorded.
type exception struct{ lies, why string }

func (e exception) covers(name string) bool {
	ok, err := path.Match(e.lies, name)
	return ok && err == nil
}

// For whole lines and fields that nothing follows from.
const (
	forPeople = "it is for people, and nothing follows from it"
	context   = "what was done to the cluster is no excuse and no promise: all has to hold whatever it was"
	whose     = "who asked, and whom, makes no answer right or wrong"
	wider     = "what may have been at any moment of a shorter time may have been in a longer one"
	weaker    = "it claims less"
	open      = "what was not answered may have been anything that was asked, and at any time"
	refused   = "what was refused changed nothing, and would have been refused in the same words"
	over      = "of a lease that is over, or was never granted, nothing remains at any later instant"
	late      = "a holder's last renewal, release or forget may have come when the watchers had heard the last"
	someTime  = "it is as little as the order of events, and the pace of the clock within its interval, leave open"
)

// exceptions are what may pass.
var exceptions = []exception{
	{"info: *", forPeople},
	{"fault: *", context},
	{"event: *", context},
	{"stored *: wall *", forPeople},
	{"records: lease_until 3ms *", late},
	{"records: forgotten_at_epoch one more", late},
	{"stored *: removed", "the last entry may have been made after the history was read, if nobody was answered that it was"},
	{"op */*: error *", forPeople},
	{"op */*: node another's", whose},
	{"op */*: client *", whose},
	{"watched *: node another's", whose},
	{"watched */*: node another's", whose},

	{"op */*: call 40ms earlier", wider},
	{"op */*: return 40ms later", wider},
	{"op */*: call 40ms later", someTime},
	{"op */*: return 40ms earlier", someTime},
	{"op get/ok: kind get-stale", weaker},
	{"op get-stale/ok: now 6s later", over},
	{"op get*/ok: now 3ms *", over},
	{"op acquire/ok: request_id *", "nobody asked again under the id"},
	{"op */*: tries *", "a try that was not answered may have been done or not"},
	{"op */unknown: *", open},
	{"op */unavailable: *", "it was not done, whatever it was"},

	{"op */refused: owner *", refused},
	{"op */refused: epoch *", refused},
	{"op */refused: ttl *", refused},
	{"op */refused: request_id *", refused},
	{"op */refused: kind *", refused},
	{"op */refused: remaining 3ms *", someTime},

	{"belief: removed", weaker},
	{"belief: repeated", "to say a thing twice is to say it once"},
	{"belief: from 40ms *", someTime},
	{"belief: until 40ms *", someTime},
	{"digest: *", "one of an index that nobody else told is compared with nothing"},
	{"recovery: removed", "a run that was ended in its last phase says nothing of the nodes that had not served by then"},
	{"recovery: served * later", weaker},
	{"watched reached: index one more", "not every entry tells something"},
	{"watched reset: index one less", "not every entry tells something"},
	{"watched *: when *", someTime},
	{"watched */*: when *", someTime},
	{"write *: at *", someTime},
}
