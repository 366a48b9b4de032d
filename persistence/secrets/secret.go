package secrets

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a string that cannot print: every way of formatting, marshalling or
// logging it gives "[secret]". Reveal is the one way out, easy to find.
// It must not be the key of a map: encoding/json writes such keys as they are.
type Secret string

const mask = "[secret]"

// Reveal returns the text. Callers hand it to the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string   { return mask }
func (s Secret) GoString() string { return mask }

// Format catches every verb, %x and %d included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(mask) }
