// Package cluster knows the nodes of one control plane, which of them owns which
// provider cluster, and brings a command to its owner. A node alone takes the
// same way as many: a request over NATS, here inside the process.
//
// It carries no state that must survive. Start reading at Router.
package cluster
