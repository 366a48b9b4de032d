// Package ident makes ids: a prefix and a UUIDv7.
package ident

import (
	"github.com/google/uuid"

	"github.com/lotuscloud/hcp"
)

// Source makes new ids. It is an interface so that tests get ids they know.
type Source interface {
	New(kind hcp.IDKind) string
}

// Random is the source of production.
func Random() Source { return random{} }

type random struct{}

func (random) New(kind hcp.IDKind) string {
	u, err := uuid.NewV7()
	if err != nil {
		panic("the machine has no randomness: " + err.Error())
	}
	return hcp.FormatID(kind, u)
}
