// Package simd is the simulated hypervisor as a server: the world behind HTTP,
// its journal on disk, its sessions, its late tasks. It knows nothing of HCP or
// of the driver, as a real hypervisor does not.
//
// With Config.Data the world survives SIGKILL of the process: each change is
// written to the journal before its answer is sent (not flushed to the platter:
// a power cut may lose the end). Running tasks go on after a restart, sessions
// do not.
//
// Start reading at (*Server).ServeHTTP.
package simd
