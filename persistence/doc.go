// Package persistence is the contract of HCP's store: what is durable, what is
// one transaction, what is refused. It holds no SQL. The implementations are
// sqlite and postgres; storetest is the one suite that both pass.
//
// The store is the truth. What HCP has accepted is in one Commit, flushed to
// disk, before anybody is told. Start reading at Commit and Store.
package persistence
