// Package hcp is the domain of the Hypervisor Control Plane: the nouns (VM,
// job, cluster, zone, image, flavor, organisation, project) and the rules that
// hold between them (lifecycle, quota, placement, names, errors).
//
// It imports the standard library only and does no I/O, reads no clock, makes
// no random number and starts no goroutine: time and ids come in as arguments.
// Start reading at VM, Job and the lifecycle table.
package hcp
