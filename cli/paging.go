package cli

import "iter"

// maxPage is how much is asked for at once: half of what the API gives, so that
// the first row is there soon.
const maxPage = 500

// pageSize asks for no more than is wanted.
func pageSize(limit int) int {
	if limit > 0 && limit < maxPage {
		return limit
	}
	return maxPage
}

// collect walks a list; a limit of 0 is all of it.
func collect[T any](items iter.Seq2[T, error], limit int) ([]T, error) {
	var out []T
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
		if limit > 0 && len(out) >= limit {
			break
		}
	}
	return out, nil
}
