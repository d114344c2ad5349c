package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read makes a run of what a [Recorder] wrote. If the file ends in the middle of a
// line, as that of a harness that was killed does, or has a line that is none of a
// Recorder's, Read returns what was before it, and an error that says so.
func Read(in io.Reader) (Run, error) {
	var run Run
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	for n := 1; ; n++ {
		var l line
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return run, nil
		}
		if err == nil {
			err = run.take(l)
		}
		if err != nil {
			return run, fmt.Errorf("history: reading record %d: %w", n, err)
		}
	}
}
