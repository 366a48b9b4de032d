// Package libvirt drives KVM and QEMU hosts through libvirtd's own RPC protocol,
// without cgo. One cluster is one or several hosts.
//
// It never uses the client library bare. A call has a deadline, and a connection
// whose call ran out of time is given up; agents, events and streams have
// connections of their own; a guard below the library refuses frames that would
// end the process; calls that pass file descriptors and the keepalive probe are
// not used at all (a test reads the sources for them).
//
// What it promises beyond the contract: a machine is identified by its uuid and
// by the VM id in its metadata, both written by the one define that brings it
// into being; backing files are chosen by us, never by a tenant; a volume that
// somebody else's machine names is never deleted.
//
// On a host: images, disks and seeds are volumes of the cluster's pool (option
// pool, default "hcp" at /var/lib/libvirt/hcp); what a machine prints on its serial
// console stands in /var/log/libvirt/qemu/NAME-serial.log and goes with the machine.
//
// Start reading at Open, then driver.go, host.go and session.go.
package libvirt
