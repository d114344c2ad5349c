package raftnet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Purpose is what a connection between two nodes is for.
type Purpose string

// The purposes.
const (
	// PurposeRaft carries raft's messages.
	PurposeRaft Purpose = "raft"
	// PurposeCall carries gRPC: calls passed on to the leader, and the state of members.
	PurposeCall Purpose = "call"
	// PurposeFound ends after the hello: nodes that found a cluster meet by it.
	PurposeFound Purpose = "found"
	// PurposeWho ends after the hello: it asks who answers at an address.
	PurposeWho Purpose = "who"
	// PurposeProbe ends after the hello: it asks a [Question].
	PurposeProbe Purpose = "probe"
)

// Hello is what either side of a connection between nodes says first.
type Hello struct {
	// Cluster is the cluster's id; empty before it is founded.
	Cluster     string  `json:"cluster,omitempty"`
	ID          string  `json:"id"`
	Incarnation string  `json:"incarnation"`
	Starts      uint64  `json:"starts"`
	Boot        string  `json:"boot"`
	Purpose     Purpose `json:"purpose"`
	APIAddr     string  `json:"api_addr"`
	// EntryVersion is the highest version of log entries that the node understands.
	EntryVersion int `json:"entry_version"`
	// Founding is what the node knows of the founding.
	Founding *FoundingView `json:"founding,omitempty"`
	// Question, with PurposeProbe, is what is asked, and Finding the answer.
	Question *Question `json:"question,omitempty"`
	Finding  *Finding  `json:"finding,omitempty"`
	// Refusal, in an answer, says why the connection is not wanted.
	Refusal string `json:"refusal,omitempty"`
}

// RefusedError says that the other node, or this one, would not talk.
type RefusedError struct {
	ID     string // the other node
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("no connection with node %q: %s", e.ID, e.Reason)
}

const (
	helloMagic    = 0x4c4e5031 // "LNP1"
	maxHelloBytes = 64 << 10
)

var errNotAPeer = errors.New("what connected does not speak as a leasenode peer")

func writeHello(w io.Writer, h Hello) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode hello: %w", err)
	}
	if len(body) > maxHelloBytes {
		return fmt.Errorf("encode hello: %d bytes are more than %d", len(body), maxHelloBytes)
	}
	frame := binary.BigEndian.AppendUint32(nil, helloMagic)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// readHello reads exactly one hello and nothing of what follows it.
func readHello(r io.Reader) (Hello, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Hello{}, fmt.Errorf("read hello: %w", err)
	}
	size := binary.BigEndian.Uint32(head[4:])
	if binary.BigEndian.Uint32(head[:4]) != helloMagic || size > maxHelloBytes {
		return Hello{}, errNotAPeer
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return Hello{}, fmt.Errorf("read hello: %w", err)
	}
	var h Hello
	if err := json.Unmarshal(body, &h); err != nil {
		return Hello{}, errNotAPeer
	}
	return h, nil
}
