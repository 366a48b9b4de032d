package persistence

import "github.com/lotuscloud/hcp"

// Sealer encrypts secrets at rest. Context binds the ciphertext to its place: a
// blob that was copied to another row does not open.
type Sealer interface {
	Seal(plain []byte, context string) (hcp.Sealed, error)
	Open(sealed hcp.Sealed, context string) ([]byte, error)
}
