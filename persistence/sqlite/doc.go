// Package sqlite is HCP's embedded store: one file, no server, the same contract
// as PostgreSQL. It may not decide anything: statements and admission stand in
// sqlstore. What is its own is the lane, one goroutine that owns the one writing
// connection and makes everything that queued up during the last flush one
// transaction; the read pool; and the lock that keeps a second process out.
//
// Start reading at Open and (*lane).run.
package sqlite
