package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/leasenode/leasenode/bench/growth/series"
)

// curve is a column of a series, with its name in the legend.
type curve struct{ column, name string }

// picture is some curves over one column.
type picture struct {
	series, file, title string
	x, xTitle, yTitle   string
	// scale is that of x.
	scale  scale
	curves []curve
}

// scale is how an axis is divided.
type scale uint8

const (
	linear scale = iota
	logarithmic
)

// ofNodes are the curves of one column of each node.
func ofNodes(column string) []curve {
	var all []curve
	for node := range nodes {
		all = append(all, curve{fmt.Sprintf("n%d_%s", node+1, column), fmt.Sprintf("node %d", node+1)})
	}
	return all
}

// pictures are all that can be drawn.
func (c config) pictures() []picture {
	churn, leases := c.seriesOf("churn"), c.seriesOf("leases")
	return []picture{
		{churn, "churn-memory", "An hour of churn: resident memory", "seconds", "seconds", "MiB", linear, ofNodes("resident_mib")},
		{churn, "churn-files", "An hour of churn: what node 1 has on its disk", "seconds", "seconds", "MiB", linear, []curve{{"n1_log_mib", "log"}, {"n1_state_mib", "state file"}, {"n1_snapshots_mib", "snapshots"}}},
		{churn, "churn-latency", "An hour of churn: 128 callers at full rate", "seconds", "seconds", "ms", linear, []curve{{"acquire_p50_ms", "acquire, p50"}, {"renew_p50_ms", "renew, p50"}, {"acquire_p99_ms", "acquire, p99"}}},
		{leases, "leases-memory", "Leases: resident memory", "leases", "leases", "MiB", logarithmic, ofNodes("resident_mib")},
		{leases, "leases-latency", "Leases: 16 callers", "leases", "leases", "ms", logarithmic, []curve{{"renew_p50_ms", "renew, p50"}, {"renew_p99_ms", "renew, p99"}, {"get_p50_ms", "get, p50"}}},
		{leases, "leases-back", "Leases: until a killed node has all it missed", "leases", "leases", "seconds", logarithmic, []curve{{"leader_back_s", "the leader"}, {"follower_back_s", "a follower"}}},
		{c.seriesOf("connections"), "connections-memory", "Connections: resident memory", "connections", "connections", "MiB", logarithmic, ofNodes("resident_mib")},
		{c.seriesOf("connections"), "connections-latency", "Connections: 16 callers beside them", "connections", "connections", "ms", logarithmic, []curve{{"renew_p50_ms", "renew, p50"}, {"renew_p99_ms", "renew, p99"}}},
		{c.seriesOf("history"), "history", "Histories: renewals of 2,000 keys", "renewals", "renewals of each key", "ms, MiB", linear, []curve{{"renew_p50_ms", "renew, p50, ms"}, {"state_mib", "state file, MiB"}}},
	}
}

// draw makes the pictures of the series in --out, there, and prints their tables.
func draw(_ context.Context, c config) error {
	shown := map[string]bool{}
	for _, p := range c.pictures() {
		s, err := series.ReadFile(filepath.Join(c.out, p.series+".csv"))
		if errors.Is(err, fs.ErrNotExist) {
			c.progress("%s: there is no series %s", p.file, p.series)
			continue
		}
		if err != nil {
			return err
		}
		if err := p.draw(s, filepath.Join(c.out, p.file+".svg")); err != nil {
			return err
		}
		if p.series == c.seriesOf("churn") || shown[p.series] {
			continue
		}
		shown[p.series] = true
		_, _ = fmt.Fprintf(c.stdout, "\n%s\n\n%s", p.series, table(s))
	}
	return nil
}

// colors are told apart by those who see few.
func colors() []color.Color {
	return []color.Color{color.RGBA{0, 90, 181, 255}, color.RGBA{220, 50, 32, 255}, color.RGBA{0, 130, 90, 255}}
}

func (p picture) draw(s series.Series, path string) error {
	chart := plot.New()
	chart.Title.Text, chart.X.Label.Text, chart.Y.Label.Text = p.title, p.xTitle, p.yTitle
	chart.Legend.Top, chart.Legend.Left = true, true
	chart.Add(plotter.NewGrid())
	if p.scale == logarithmic {
		chart.X.Scale, chart.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	xs := s.Column(p.x)
	highest := 0.0
	for i, c := range p.curves {
		points := make(plotter.XYs, len(xs))
		for row, y := range s.Column(c.column) {
			points[row] = plotter.XY{X: xs[row], Y: y}
			highest = max(highest, y)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("draw %s: %s: %w", p.file, c.column, err)
		}
		line.Color, line.Width = colors()[i%len(colors())], vg.Points(1.5)
		chart.Add(line)
		chart.Legend.Add(c.name, line)
	}
	chart.Y.Min, chart.Y.Max = 0, highest*1.25 // with room for the legend
	if err := chart.Save(16*vg.Centimeter, 8*vg.Centimeter, path); err != nil {
		return fmt.Errorf("draw %s: %w", p.file, err)
	}
	return nil
}

// table shows a short series.
func table(s series.Series) string {
	text := "| " + strings.Join(s.Columns, " | ") + " |\n|" + strings.Repeat(" --- |", len(s.Columns)) + "\n"
	for _, row := range s.Rows {
		for _, v := range row {
			text += fmt.Sprintf("| %.4g ", v)
		}
		text += "|\n"
	}
	return text
}
