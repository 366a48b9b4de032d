// Package chaos kills hcpd with SIGKILL at random moments of its work, starts it
// again on the same data, and demands that nothing is lost, nothing happens
// twice and nothing is left over. The hypervisor lives on. Moments come from a
// seed that is printed; HCPTEST_SEED repeats a run.
package chaos
