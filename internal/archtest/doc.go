// Package archtest is the house rules as a test: which folder may import which,
// where a vendor's module may stand, how long a file may be, who may read the
// clock. It reads source only and runs nothing of it.
//
// Start reading at Check; rules.go holds what is allowed.
package archtest
