// Package drivers is the contract between HCP and hypervisors, the capability
// model, and nothing of any vendor. One folder below is one vendor; drivertest
// is the one suite that every driver passes against its peer.
//
// What a driver must promise: identity before force (it touches only objects
// that carry our marker), exactly one effect per token, and honesty: when it
// cannot tell whether the provider did something, it says OUTCOME_UNKNOWN.
package drivers
