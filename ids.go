package hcp

import (
	"encoding/hex"
	"strings"
)

// Ids are a prefix and the 32 lower-case hex digits of a UUIDv7, so they sort
// by time and double-click as one word: vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071.
type (
	VMID      string
	JobID     string
	ClusterID string
	ZoneID    string
	ImageID   string
	FlavorID  string
	OrgID     string
	ProjectID string
	EventID   string
	AuditID   string
	RequestID string
	CommandID string
)

// IDKind is the prefix of an id, without the underscore.
type IDKind string

const (
	KindVM      IDKind = "vm"
	KindJob     IDKind = "job"
	KindCluster IDKind = "cl"
	KindZone    IDKind = "zone"
	KindImage   IDKind = "img"
	KindFlavor  IDKind = "flv"
	KindOrg     IDKind = "org"
	KindProject IDKind = "prj"
	KindEvent   IDKind = "evt"
	KindAudit   IDKind = "aud"
	KindRequest IDKind = "req"
	KindCommand IDKind = "cmd"
	KindBinding IDKind = "rb"
)

var idKinds = map[IDKind]bool{
	KindVM: true, KindJob: true, KindCluster: true, KindZone: true, KindImage: true, KindFlavor: true,
	KindOrg: true, KindProject: true, KindEvent: true, KindAudit: true, KindRequest: true, KindCommand: true, KindBinding: true,
}

// FormatID renders the 16 bytes of a UUIDv7 as an id of the given kind.
func FormatID(kind IDKind, uuid [16]byte) string {
	buf := make([]byte, 0, len(kind)+1+32)
	buf = append(buf, kind...)
	buf = append(buf, '_')
	return string(hex.AppendEncode(buf, uuid[:]))
}

// ParseID splits an id into its kind and UUID. It is strict: known prefix,
// exactly 32 lower-case hex digits, UUID version 7. Every other string is not
// an id, and only then may it be a name.
func ParseID(s string) (IDKind, [16]byte, bool) {
	var uuid [16]byte
	prefix, digits, found := strings.Cut(s, "_")
	if !found || !idKinds[IDKind(prefix)] || len(digits) != 32 || strings.ToLower(digits) != digits {
		return "", uuid, false
	}
	if _, err := hex.Decode(uuid[:], []byte(digits)); err != nil || uuid[6]>>4 != 7 {
		return "", uuid, false
	}
	return IDKind(prefix), uuid, true
}

// IsID reports whether s is a well-formed id of the given kind.
func IsID(kind IDKind, s string) bool {
	k, _, ok := ParseID(s)
	return ok && k == kind
}

// UUID is the VM's identity in the usual 8-4-4-4-12 form, as hypervisors want it.
func (id VMID) UUID() string {
	_, u, ok := ParseID(string(id))
	if !ok {
		return ""
	}
	h := hex.EncodeToString(u[:])
	return h[0:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Short is the last eight digits of the id: enough to tell provider objects apart by eye.
func (id VMID) Short() string {
	if len(id) < 8 {
		return string(id)
	}
	return string(id[len(id)-8:])
}

// VMIDFromUUID is the inverse of VMID.UUID; it accepts upper case and dashes.
func VMIDFromUUID(s string) (VMID, bool) {
	id := string(KindVM) + "_" + strings.ToLower(strings.ReplaceAll(s, "-", ""))
	return VMID(id), IsID(KindVM, id)
}
