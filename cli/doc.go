// Package cli is hcpctl: the command line of HCP. It speaks to a server only
// through api/client (and, for the simulated hypervisor, its control client);
// it holds no rule of the domain and keeps no state but its configuration file.
//
// What scripts may rely on: the result and nothing else on stdout; with -o json
// one document on stdout, or one problem document on stderr and nothing on
// stdout; the exit codes of hcp.Exit*; no escape byte where no terminal is.
//
// Start reading at Main, then app for what every command shares; each noun has
// a file of its own, its bigger verbs one each.
package cli
