package cli

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
)

const (
	columnGap = "  "
	// minColumn is how far a column is shortened before the last resort: the line wraps.
	minColumn = 8
)

// printTable prints without borders. On a terminal it is fitted to the width by
// shortening in the middle what nobody pastes; in a pipe every value is whole.
func printTable[T any](a *app, l listing[T], items []T) error {
	var columns []column[T]
	for _, c := range l.columns {
		if !c.isWide || a.global.output == formatWide {
			columns = append(columns, c)
		}
	}
	cells := make([][]string, 0, len(items)+1)
	if !a.global.noHeaders {
		head := make([]string, len(columns))
		for i, c := range columns {
			head[i] = c.head
		}
		cells = append(cells, head)
	}
	for _, it := range items {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = orDash(printable(c.cell(a, it)))
			if i == 0 && a.term.out {
				row[i] = shellQuote(row[i])
			}
		}
		cells = append(cells, row)
	}
	widths := columnWidths(cells, len(columns))
	if a.term.out && a.global.output != formatWide {
		keep := make([]bool, len(columns))
		for i, c := range columns {
			keep[i] = c.keep || i == 0
		}
		fit(widths, keep, a.term.width)
	}
	var b bytes.Buffer
	for r, row := range cells {
		isHead := r == 0 && !a.global.noHeaders
		for i, cell := range row {
			writeCell(&b, shorten(cell, widths[i]), widths[i], cellStyle{
				colour: cellColour(columns[i].state, isHead, cell), paint: a.paints(a.term.out),
				right: columns[i].right, isLast: i == len(row)-1})
		}
		b.WriteByte('\n')
	}
	return a.write(b.Bytes())
}

func columnWidths(cells [][]string, n int) []int {
	widths := make([]int, n)
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	return widths
}

// fit takes from the widest column that may be shortened until the line fits.
func fit(widths []int, keep []bool, total int) {
	for {
		sum := len(columnGap) * (len(widths) - 1)
		widest := -1
		for i, w := range widths {
			sum += w
			if !keep[i] && w > minColumn && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if sum <= total || widest < 0 {
			return
		}
		widths[widest]--
	}
}

type cellStyle struct {
	colour        colour
	paint         bool
	right, isLast bool
}

func cellColour(isState, isHead bool, cell string) colour {
	switch {
	case isHead:
		return faint
	case isState:
		return wordColour(cell)
	}
	return plain
}

func writeCell(b *bytes.Buffer, cell string, width int, s cellStyle) {
	pad := strings.Repeat(" ", max(0, width-displayWidth(cell)))
	text := s.colour.paint(cell, s.paint)
	switch {
	case s.right:
		b.WriteString(pad + text)
	case s.isLast:
		b.WriteString(text)
	default:
		b.WriteString(text + pad)
	}
	if !s.isLast {
		b.WriteString(columnGap)
	}
}

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
