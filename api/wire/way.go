package wire

import (
	"regexp"
	"strconv"
	"strings"
)

// callError is the failure of a call that was not answered by a server of ours.
type callError struct {
	text   string
	causes []error // what it stands for, the call's own error, and its context's
}

func (e *callError) Error() string   { return e.text }
func (e *callError) Unwrap() []error { return e.causes }

// callText says in one line what such a failure stands for, and in brackets what the way
// there said.
func callText(is error, effect Effect, message string) string {
	text := is.Error()
	if effect == Reads {
		text = "unavailable, try again" // that it was not done goes without saying
	}
	if why := wayText(message); why != "" {
		return text + " (" + why + ")"
	}
	return text
}

// quoted is how gRPC begins what a transport has said: a Go string follows, and what
// follows that says no more.
const quoted = "connection error: desc = "

// layers are what gRPC, our own dialers and the system say around the reason why a way
// failed: who was told, and how it was called there. The address is said by whoever made
// the call.
var layers = regexp.MustCompile(`^(transport: |[Ee]rror while dialing:? |dial node "[^"]*": |(dial|read|write) (tcp|unix)[46]?( [^ ]+)?: |connect: |read: |write: |closing transport due to: |error reading from server: )`)

// wayText returns message, which is gRPC's, without the layers before the reason.
func wayText(message string) string {
	for {
		if rest, ok := strings.CutPrefix(message, quoted); ok {
			literal, err := strconv.QuotedPrefix(rest)
			inner, fault := strconv.Unquote(literal)
			if err != nil || fault != nil {
				return message
			}
			message = inner
			continue
		}
		layer := layers.FindString(message)
		if layer == "" {
			return message
		}
		message = message[len(layer):]
	}
}
