package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"

	"github.com/anishathalye/porcupine"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
)

// FileName is the name of the page.
const FileName = "report.html"

//go:embed page.html page.css page.js
var files embed.FS

// Write writes the page of run into the directory dir, which has to be there, and a
// picture for each key without a right order. It replaces those of an earlier run.
func Write(dir string, run history.Run, verdict check.Verdict) error {
	pictures, err := writePictures(dir, verdict)
	if err != nil {
		return err
	}
	page, err := render(run, verdict, pictures)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), page, 0o644); err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

// writePictures returns the file names of the pictures, by key. Keys can hold anything,
// so the names are numbers.
func writePictures(dir string, verdict check.Verdict) (map[string]string, error) {
	pictures := map[string]string{}
	for _, r := range verdict.Keys {
		if r.Answer != porcupine.Illegal {
			continue
		}
		name := fmt.Sprintf("porcupine-%d.html", len(pictures)+1)
		if err := r.Visualize(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		pictures[r.Key] = name
	}
	return pictures, nil
}

func render(run history.Run, verdict check.Verdict, pictures map[string]string) ([]byte, error) {
	page, err := template.New("page.html").Funcs(functions).ParseFS(files, "page.html")
	if err != nil {
		return nil, fmt.Errorf("report: the page's template: %w", err)
	}
	style, err := files.ReadFile("page.css")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	script, err := files.ReadFile("page.js")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	view := viewOf(run, verdict, pictures)
	view.Style, view.Script = template.CSS(style), template.JS(script)
	var out bytes.Buffer
	if err := page.Execute(&out, view); err != nil {
		return nil, fmt.Errorf("report: filling the page: %w", err)
	}
	return out.Bytes(), nil
}
