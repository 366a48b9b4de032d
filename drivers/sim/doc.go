// Package sim is the driver of the simulated hypervisor. It is a driver like any
// other: it speaks HTTP to another process, logs in, loses connections, and may
// not look into the hypervisor's memory. The hypervisor itself is simd (the
// server) over world (the model); simctl drives its faults.
//
// Every call that changes a machine carries the marker that it must have, and
// the hypervisor checks it in the same step: identity before force costs no call.
//
// Start reading at Open, then create.go.
package sim
