// Package auth says who calls and what that caller may do. Tokens are JWTs of
// HCP's own issuer; what a subject may do comes from role bindings in the store
// and from nothing in the token. It knows no HTTP. Start reading at Issuer.Verify
// and Bindings.
package auth
