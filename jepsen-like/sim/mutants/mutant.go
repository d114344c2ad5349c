package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is the product with one rule left out.
type Mutant struct {
	Name string
	// Rule is what is left out or turned round, in half a sentence.
	Rule  string
	Edits []Edit
	// Test is the test of package sim that has to fail: one scenario, or [Seeds].
	Test string
	// Slow mutants are left out where only a few minutes are to be spent.
	Slow bool
}

// Seeds is the Test of a mutant that has to be caught by a schedule of some seed.
const Seeds = "TestSeeds"

// Edit replaces one text in a file, which has it exactly once.
type Edit struct {
	// File is its path from the root of the module.
	File     string
	Old, New string
}

// Overlay writes the changed files of m into dir, and a file for the go command's
// -overlay that puts them in place of those under root; it returns the latter's path.
func (m Mutant) Overlay(root, dir string) (string, error) {
	changed := map[string]string{}
	for _, e := range m.Edits {
		text, known := changed[e.File]
		if !known {
			raw, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", err
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("mutant %s is out of date: its text is %d times in %s, and has to be there once:\n%s", m.Name, n, e.File, e.Old)
		}
		changed[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	replace := map[string]string{}
	for file, text := range changed {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = path
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}
