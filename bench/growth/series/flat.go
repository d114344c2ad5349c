package series

import "github.com/leasenode/leasenode/bench/measure"

// Bound says how much more a column may have at the end of a run than at the beginning.
type Bound struct {
	// Column is its name, Title what it is called in the verdict.
	Column, Title string
	// Growth is the part of the earlier value, and Slack the amount on top of it, that
	// may come.
	Growth, Slack float64
}

// Verdict is what a run says of one column.
type Verdict struct {
	Bound
	// Early and Late are medians: of a window behind the warm-up, and of the last of the
	// same length.
	Early, Late float64
	Flat        bool
}

// Judge compares, for each bound, the median of the rows from the part warm of all on with
// that of the last rows, each over the part window. What falls is flat, too. A column
// that is missing or a run of too few rows is not.
func (s Series) Judge(bounds []Bound, warm, window float64) []Verdict {
	n := len(s.Rows)
	from, length := int(warm*float64(n)), int(window*float64(n))
	var all []Verdict
	for _, b := range bounds {
		v := Verdict{Bound: b}
		if column := s.Column(b.Column); column != nil && length > 0 && from+length <= n-length {
			v.Early, v.Late = measure.Median(column[from:from+length]), measure.Median(column[n-length:])
			v.Flat = v.Late <= v.Early*(1+b.Growth)+b.Slack
		}
		all = append(all, v)
	}
	return all
}
