// Package persistence is the contract of HCP's store: what is durable, what is
// one transaction, what is refused. It holds no SQL: the engines, sqlite and
// later postgres, share theirs in sqlstore, and storetest is the one suite that
// each passes. secrets seals what may not be read from a stolen database; fault
// makes a store fail on purpose.
//
// The store is the truth. What HCP has accepted is in one Commit, flushed to
// disk, before anybody is told. Start reading at Commit and Store.
package persistence
