// Package provider is the actor that governs one provider cluster: the only
// holder of its driver, sessions and credentials. It queues work fairly between
// projects, caps how much runs at once, breaks the circuit when the provider is
// away, probes health and capabilities, sweeps the inventory for all VMs at
// once, and tells VM actors only what needs a decision.
//
// Driver calls run in its workers, never in its mailbox. Start reading at Work,
// then Actor.Receive.
package provider
