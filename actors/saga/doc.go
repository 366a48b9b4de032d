// Package saga declares what a job is: a list of named steps, each with a Do and
// perhaps an Undo, and runs as many of them as one durable intent covers.
//
// It decides nothing about retry, deadlines or undo: that is pure and lives in
// actors/vm. It never writes: its results go back to the VM's actor, which makes
// them durable. Start reading at Step, then Run.
package saga
