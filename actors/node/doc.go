// Package node runs the actors of one process: it activates the clusters and VMs
// that this node owns, brings commands to them, wakes what is due, passivates
// what is idle, and publishes events. Start reading at Start.
package node
