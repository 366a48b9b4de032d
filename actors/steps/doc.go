// Package steps holds what jobs do: one file for each kind of work, each a short
// list of steps that can be read as a sentence, over actions that are idempotent
// and read back what they did. It calls the driver and nothing else.
//
// Start reading at Definitions.
package steps
