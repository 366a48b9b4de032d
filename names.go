package hcp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the longest name in characters (not bytes).
const MaxNameLength = 128

// CheckName says why s cannot be the name of a resource; nil when it can.
// The caller has brought s to Unicode normal form NFC: that needs tables that
// are not in the standard library.
//
// A name never contains / \ % or control characters (it stands in URL paths),
// is not . or .., does not begin or end with space, and never reads as an id or
// an LRN: otherwise one resource could be named to answer for another.
func CheckName(s string) error {
	bad := func(why string) error {
		return &Error{Code: CodeInvalidRequest, Reason: "invalid_name", Message: "the name is not valid: " + why,
			Fields: []FieldError{{Pointer: "/name", Reason: "invalid_name", Detail: why}}}
	}
	switch {
	case s == "":
		return bad("it is empty")
	case !utf8.ValidString(s):
		return bad("it is not valid UTF-8")
	case utf8.RuneCountInString(s) > MaxNameLength:
		return bad("it is longer than 128 characters")
	case s == "." || s == "..":
		return bad("it is a path element")
	case strings.TrimSpace(s) != s:
		return bad("it begins or ends with white space")
	case LooksLikeLRN(s):
		return bad("it reads as an LRN")
	}
	if _, _, isID := ParseID(strings.ToLower(s)); isID {
		return bad("it reads as an id")
	}
	for _, r := range s {
		if r == '/' || r == '\\' || r == '%' {
			return bad("it contains one of / \\ %")
		}
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFEFF' || unicode.Is(unicode.Bidi_Control, r) {
			return bad("it contains a control character")
		}
	}
	return nil
}

// MaxHostnameLength is the longest label of RFC 1123.
const MaxHostnameLength = 63

// Hostname derives the guest's host name from the VM's name: lower case ASCII,
// every run of other characters one dash, no dash at the ends, at most 63
// characters (RFC 1123). A name without a usable character gives "vm-" and the
// short id.
func Hostname(name string, id VMID) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		isPlain := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		switch {
		case isPlain:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	h := b.String()
	if len(h) > MaxHostnameLength {
		h = h[:MaxHostnameLength]
	}
	h = strings.Trim(h, "-")
	if h == "" {
		return "vm-" + id.Short()
	}
	return h
}

// ProviderName is the ASCII name the VM bears on its hypervisor: derived from
// the tenant's name for the eye, unique by the id for the machine.
func ProviderName(name string, id VMID) string {
	h := Hostname(name, id)
	if len(h) > 40 {
		h = strings.Trim(h[:40], "-")
	}
	return h + "-" + id.Short()
}
