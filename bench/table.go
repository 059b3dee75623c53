package main

import (
	"strings"
	"unicode/utf8"
)

// A table is rows of cells; the first row is the head. The first left columns
// are texts, the rest are numbers.
type table struct {
	left int
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String pads the columns.
func (t *table) String() string {
	var width []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for n, row := range t.rows {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < t.left {
				line.WriteString(c + pad)
			} else {
				line.WriteString(pad + c)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if n == 0 {
			b.WriteString(strings.Repeat("-", sum(width)+2*(len(width)-1)) + "\n")
		}
	}
	return b.String()
}

func sum(v []int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}
