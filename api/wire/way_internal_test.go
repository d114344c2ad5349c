package wire

import "testing"

func TestWayTextIsTheReasonAlone(t *testing.T) {
	for message, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:7201: connect: connection refused"`:                "connection refused",
		`connection error: desc = "transport: Error while dialing: dial tcp [::1]:7201: connect: connection refused"`:                    "connection refused",
		`connection error: desc = "transport: Error while dialing: dial tcp: lookup n1.invalid: no such host"`:                           "lookup n1.invalid: no such host",
		`error reading from server: read tcp 127.0.0.1:40000->127.0.0.1:7201: read: connection reset by peer`:                            "connection reset by peer",
		`closing transport due to: connection error: desc = "error reading from server: EOF", received prior goaway: code: NO_ERROR`:     "EOF",
		`connection error: desc = "transport: Error while dialing: dial node \"n3\": dial tcp 127.0.0.1:1: connect: connection refused"`: "connection refused",
		`connection error: desc = "a \"quoted\" reason"`:                                                                                 `a "quoted" reason`,
		`connection error: desc = not quoted`:                         `connection error: desc = not quoted`,
		"context deadline exceeded":                                   "context deadline exceeded",
		`name resolver error: produced zero addresses, "so", it says`: `name resolver error: produced zero addresses, "so", it says`,
		"": "",
	} {
		if got := wayText(message); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", message, got, want)
		}
	}
}
