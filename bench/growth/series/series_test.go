package series_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/bench/growth/series"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.csv")
	w, err := series.Create(path, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]float64{{1, 0.5}, {1e9, -3}}
	for n, row := range rows {
		if err := w.Add(row); err != nil {
			t.Fatal(err)
		}
		s, err := series.ReadFile(path) // before it is closed
		if err != nil || !reflect.DeepEqual(s.Rows, rows[:n+1]) {
			t.Fatalf("after %d rows: %v, %v", n+1, s.Rows, err)
		}
	}
	if err := w.Add([]float64{1}); err == nil {
		t.Error("a row that is too short was taken")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	s, err := series.ReadFile(path)
	if err != nil || !reflect.DeepEqual(s.Column("b"), []float64{0.5, -3}) || s.Column("c") != nil {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestWhatIsNoSeriesIsRefused(t *testing.T) {
	for _, text := range []string{"", "a,b\n1\n", "a\nx\n"} {
		if _, err := series.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if _, err := series.ReadFile(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) && err == nil {
		t.Error("a missing file was read")
	}
}

func TestJudge(t *testing.T) {
	of := func(values ...float64) series.Series {
		s := series.Series{Columns: []string{"v"}}
		for _, v := range values {
			s.Rows = append(s.Rows, []float64{v})
		}
		return s
	}
	bound := series.Bound{Column: "v", Growth: 0.1, Slack: 1}
	for _, c := range []struct {
		name        string
		s           series.Series
		bound       series.Bound
		early, late float64
		flat        bool
	}{
		{"level", of(0, 10, 10, 10, 10, 10, 10, 10, 10, 10), bound, 10, 10, true},
		{"warm-up is left out", of(900, 10, 10, 10, 10, 10, 10, 10, 10, 10), bound, 10, 10, true},
		{"within the bound", of(0, 10, 10, 10, 10, 10, 10, 10, 12, 12), bound, 10, 12, true},
		{"beyond it", of(0, 10, 10, 10, 10, 10, 10, 10, 12.2, 12.2), bound, 10, 12.2, false},
		{"one outlier", of(0, 10, 10, 10, 10, 10, 10, 10, 99, 10, 10), bound, 10, 10, true},
		{"falling", of(0, 10, 10, 10, 10, 10, 10, 10, 1, 1), bound, 10, 1, true},
		{"too short", of(1, 1), bound, 0, 0, false},
		{"no such column", of(0, 10, 10, 10, 10, 10, 10, 10, 10, 10), series.Bound{Column: "w"}, 0, 0, false},
	} {
		window := 0.2
		if c.name == "one outlier" {
			window = 0.3
		}
		got := c.s.Judge([]series.Bound{c.bound}, 0.1, window)[0]
		if got.Flat != c.flat || got.Early != c.early || got.Late != c.late {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}
