// Package harness starts HCP as a user has it: the binaries, each in a process of
// its own, driven over loopback only. It imports no implementation of HCP; what
// it knows is the API, the fault controls of the simulated hypervisor, and kill.
//
// Start reading at Start, then World.CheckSums: what every test must leave behind.
package harness
