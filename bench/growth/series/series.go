// Package series keeps what is measured again and again: rows of numbers under named
// columns, as CSV files that are complete up to the last row however a run ends, and what
// can be said of how a column has changed. It is pure but for [Writer]. Start reading at
// [Series].
package series

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

// Series is a table of numbers. Every row has a number for each column.
type Series struct {
	Columns []string
	Rows    [][]float64
}

// Column returns the numbers of a column, nil if there is none of that name.
func (s Series) Column(name string) []float64 {
	i := slices.Index(s.Columns, name)
	if i < 0 {
		return nil
	}
	var all []float64
	for _, row := range s.Rows {
		all = append(all, row[i])
	}
	return all
}

// Writer writes a series row by row.
type Writer struct {
	file    *os.File
	columns int
	csv     *csv.Writer
}

// Create makes the file and writes the columns. Close has to be called.
func Create(path string, columns []string) (*Writer, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("write a series: %w", err)
	}
	w := &Writer{file: file, columns: len(columns), csv: csv.NewWriter(file)}
	return w, w.write(columns)
}

// Add writes a row, which is in the file when it returns.
func (w *Writer) Add(row []float64) error {
	if len(row) != w.columns {
		return fmt.Errorf("write a series: a row of %d numbers for %d columns", len(row), w.columns)
	}
	var fields []string
	for _, v := range row {
		fields = append(fields, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return w.write(fields)
}

func (w *Writer) write(fields []string) error {
	if err := w.csv.Write(fields); err != nil {
		return fmt.Errorf("write a series: %w", err)
	}
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return fmt.Errorf("write a series: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Read reads a series.
func Read(from io.Reader) (Series, error) {
	lines, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return Series{}, fmt.Errorf("read a series: %w", err)
	}
	if len(lines) == 0 {
		return Series{}, fmt.Errorf("read a series: %w", io.ErrUnexpectedEOF)
	}
	s := Series{Columns: lines[0]}
	for _, line := range lines[1:] {
		var row []float64
		for _, field := range line {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return Series{}, fmt.Errorf("read a series: %w", err)
			}
			row = append(row, v)
		}
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}

// ReadFile reads the series of a file.
func ReadFile(path string) (Series, error) {
	file, err := os.Open(path)
	if err != nil {
		return Series{}, fmt.Errorf("read a series: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return Read(file)
}
