// Package drivertest is the one conformance suite of hypervisor drivers: each
// rule of the contract in drivers is one subtest whose name is the rule. Every
// driver runs it against its peer (a simulator, an emulator, a real
// hypervisor); an operator may run it against a real cluster.
//
// The suite speaks to the driver only; what a driver cannot do by itself (plant
// a stranger, cut a connection) the peer does through Hooks. A rule that cannot
// run is skipped and says why; Env.Require turns the skip into a failure.
//
// Start reading at Run and the table rules.
package drivertest
