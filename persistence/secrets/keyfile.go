package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// KeyFile seals with the keyset of a file. It is safe for concurrent use and
// implements persistence.Sealer.
type KeyFile struct {
	path string
	aead tink.AEAD
}

var _ persistence.Sealer = (*KeyFile)(nil)

const (
	keyMode    = 0o600
	maxKeySize = 1 << 20
)

// OpenKeyFile reads the keyset at path. With create it makes one when none is
// there; of several processes that do so at once one wins and all use its key.
// The error is *hcp.Error UNAVAILABLE with reason key_missing, key_exposed,
// key_unreadable or key_damaged; it names the file and what to do.
func OpenKeyFile(path string, create bool) (*KeyFile, error) {
	raw, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := makeKeyFile(path); err != nil {
			return nil, err
		}
		raw, err = read(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, trouble("key_missing", path, "is missing", "restore it from its backup; without it nothing sealed in the database can be opened")
	case err != nil:
		return nil, err
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(raw)))
	if err != nil {
		// The cause stays out: a parser may quote what it read.
		return nil, trouble("key_damaged", path, "does not hold a keyset", "restore it from its backup; do not edit it")
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, trouble("key_damaged", path, "holds a keyset of another kind", "restore it from its backup; it must hold AEAD keys")
	}
	return &KeyFile{path: path, aead: primitive}, nil
}

// read examines the file it has opened, not the name: they could differ.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, trouble("key_unreadable", path, "cannot be opened", "let the user that runs hcpd own it").WithCause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, trouble("key_unreadable", path, "cannot be examined", "let the user that runs hcpd own it").WithCause(err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, trouble("key_unreadable", path, "is not a regular file", "name a file with --key-file")
	case mode.Perm()&0o077 != 0:
		return nil, trouble("key_exposed", path, fmt.Sprintf("can be read by others (mode %04o)", mode.Perm()),
			"run: chmod 600 "+path+", and rotate the credentials if others had access")
	case info.Size() == 0:
		return nil, trouble("key_damaged", path, "is empty", "restore it from its backup, or remove it if nothing was ever sealed with it")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeySize))
	if err != nil {
		return nil, trouble("key_unreadable", path, "cannot be read", "look at the disk").WithCause(err)
	}
	return raw, nil
}

// makeKeyFile writes the keyset beside its place, flushed, and links it there: no
// moment shows half a key or a wrong mode, and whoever was first stays.
func makeKeyFile(path string) (err error) {
	defer func() {
		var own *hcp.Error
		if err != nil && !errors.As(err, &own) {
			err = trouble("key_unreadable", path, "cannot be made", "let the user that runs hcpd write its folder").WithCause(err)
		}
	}()
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&buf)); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600 by contract
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	if _, err := tmp.Write(buf.Bytes()); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := errors.Join(tmp.Chmod(keyMode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func trouble(reason, path, what, hint string) *hcp.Error {
	return hcp.Errorf(hcp.CodeUnavailable, reason, "the key file %s %s", path, what).WithHint(hint)
}

// Seal encrypts plain for one place.
func (k *KeyFile) Seal(plain []byte, context string) (hcp.Sealed, error) {
	b, err := k.aead.Encrypt(plain, []byte(context))
	if err != nil {
		return nil, hcp.Errorf(hcp.CodeInternal, "seal_failed", "a secret could not be sealed")
	}
	return b, nil
}

// Open decrypts what was sealed for the same place with a key of this keyset.
func (k *KeyFile) Open(sealed hcp.Sealed, context string) ([]byte, error) {
	b, err := k.aead.Decrypt(sealed, []byte(context))
	if err != nil {
		return nil, hcp.Errorf(hcp.CodeUnavailable, "unseal_failed", "a secret for %s cannot be opened with the key file %s", context, k.path).
			WithHint("use the key file it was sealed with, or store the secret again")
	}
	return b, nil
}

// String keeps the key out of logs.
func (k *KeyFile) String() string { return "[key file " + k.path + "]" }

// GoString keeps the key out of %#v.
func (k *KeyFile) GoString() string { return k.String() }
