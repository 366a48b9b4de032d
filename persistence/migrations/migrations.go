// Package migrations is the schema of HCP's store, as goose migrations in the
// dialect that SQLite and PostgreSQL share. It may not hold anything that only
// one of them understands. A released file is never edited: a later one expands,
// a yet later one contracts, so that two releases can share a database.
package migrations

import "embed"

// FS holds the migrations at its root.
//
//go:embed *.sql
var FS embed.FS
