package cli

import (
	"context"

	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// wordsOf makes completion words of items: a word and its remark each.
func wordsOf[T any](items []T, err error, of func(T) (word, remark string)) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var words []string
	for _, it := range items {
		word, remark := of(it)
		if remark != "" {
			word += "\t" + remark
		}
		words = append(words, word)
	}
	return words, nil
}

func listingWords[T any](items []T, err error, l listing[T]) ([]string, error) {
	return wordsOf(items, err, func(v T) (string, string) { return l.name(v), "" })
}

func opsWords[T any](ctx context.Context, a *app, list func(*client.Ops, context.Context) (v1.Page[T], error), l listing[T]) ([]string, error) {
	o, err := a.ops()
	if err != nil {
		return nil, err
	}
	page, err := list(o, ctx)
	return listingWords(page.Items, err, l)
}
