// Package load is `make bench`: it starts a simulated hypervisor and hcpd as
// processes of their own, drives them over loopback, and prints rates and costs
// beside the machine's own limits of the same run. Nothing here asserts a time.
package load
