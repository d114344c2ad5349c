package wire

import (
	"regexp"
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

// layers are what gRPC and the system say around the reason why a way failed: who was
// told, and how it was called there. The address is said by whoever made the call.
var layers = regexp.MustCompile(`^(connection error: desc = "|transport: |Error while dialing:? |error while dialing:? |(dial|read|write) (tcp|unix)[46]?( [^ ]+)?: |connect: |read: |write: |closing transport due to: |error reading from server: )`)

// wayText returns message, which is gRPC's, without the layers before the reason.
func wayText(message string) string {
	text := message
	for {
		layer := layers.FindString(text)
		if layer == "" {
			break
		}
		text = text[len(layer):]
	}
	if len(text) < len(message) { // what was quoted ends as it began, and what follows says no more
		text, _, _ = strings.Cut(text, `", `)
		text = strings.TrimSuffix(text, `"`)
	}
	return text
}
