// Package script runs what a person types: each testdata/*.txtar is a story of
// hcpctl commands against an hcpd --dev of its own. Start reading at
// TestScripts, then any story.
package script
