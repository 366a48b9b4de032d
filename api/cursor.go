package api

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"github.com/lotuscloud/hcp"
)

// cursors seal a position in the event log together with the generation of the
// store: after a restore the same number means something else.
type cursors struct {
	aead       cipher.AEAD
	generation string
}

func newCursors(key []byte, generation string) (*cursors, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &cursors{aead, generation}, nil
}

// seal hides the position: its steps would tell how busy other projects are.
func (c *cursors) seal(pos int64) string {
	nonce := make([]byte, c.aead.NonceSize())
	rand.Read(nonce)
	plain := binary.BigEndian.AppendUint64(nil, uint64(pos))
	plain = append(plain, c.generation...)
	return base64.RawURLEncoding.EncodeToString(c.aead.Seal(nonce, nonce, plain, nil))
}

// open is INVALID_REQUEST for what is no cursor, CURSOR_EXPIRED for one of
// another generation.
func (c *cursors) open(cursor string) (int64, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < c.aead.NonceSize() {
		return 0, badQuery("cursor", "bad_cursor", "the cursor is not valid")
	}
	plain, err := c.aead.Open(nil, b[:c.aead.NonceSize()], b[c.aead.NonceSize():], nil)
	if err != nil || len(plain) < 8 {
		return 0, badQuery("cursor", "bad_cursor", "the cursor is not valid")
	}
	if string(plain[8:]) != c.generation {
		return 0, hcp.Errorf(hcp.CodeCursorExpired, "other_generation", "the cursor is from before the store was restored")
	}
	return int64(binary.BigEndian.Uint64(plain)), nil
}
