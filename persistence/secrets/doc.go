// Package secrets seals what must not be read from a stolen database: provider
// credentials, user data, the keys of the ring. It may not log, and no error of
// it carries key material or plain text. The master key is a Tink keyset in a
// file with mode 0600, apart from the database.
//
// Start reading at OpenKeyFile.
package secrets
