// Package e2e holds the behaviours that HCP is accepted by, as black-box tests:
// hcpd, hcpctl and the simulated hypervisor are processes, spoken to over
// loopback. A test's name begins with the id of its behaviour. After each, the
// harness checks the sums: see harness.World.CheckSums.
package e2e
