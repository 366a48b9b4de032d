package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// The namespaces of our elements in a domain's metadata. The marker is written
// by the define that makes the domain; the boot element by each start.
const (
	markerNS = "urn:lotuscloud:hcp:1"
	bootNS   = "urn:lotuscloud:hcp:boot:1"

	metaElement = 2 // VIR_DOMAIN_METADATA_ELEMENT
)

// marker says whose machine a domain is.
type marker struct {
	XMLName xml.Name      `xml:"vm"`
	ID      hcp.VMID      `xml:"id,attr"`
	Project hcp.ProjectID `xml:"project,attr"`
}

// markerXML is the element as it stands in a define.
func markerXML(spec drivers.Spec) string {
	return fmt.Sprintf(`<hcp:vm xmlns:hcp="%s" id="%s" project="%s" name="%s"/>`,
		markerNS, escape(string(spec.VM)), escape(string(spec.Project)), escape(spec.Name))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}

// readMarker is the domain's marker; the zero marker when it has none.
func readMarker(ctx context.Context, h *host, dom golibvirt.Domain) (marker, error) {
	raw, err := readMetadata(ctx, h, dom, markerNS)
	if err != nil || raw == "" {
		return marker{}, err
	}
	return parseMarker(raw), nil
}

// parseMarker reads rubbish as no marker: then the domain is not ours.
func parseMarker(raw string) marker {
	var m marker
	if xml.Unmarshal([]byte(raw), &m) != nil || !hcp.IsID(hcp.KindVM, string(m.ID)) {
		return marker{}
	}
	return m
}

func readMetadata(ctx context.Context, h *host, dom golibvirt.Domain, ns string) (string, error) {
	raw, err := call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) {
		return lv.DomainGetMetadata(dom, metaElement, golibvirt.OptString{ns}, 0)
	})
	if isCode(err, codeNoMetadata) {
		return "", nil
	}
	return raw, err
}

// candidate is the n-th uuid that a VM may have: its own, and, should a stranger
// have that one, others derived from it.
func candidate(vm hcp.VMID, n int) string {
	if n == 0 {
		return vm.UUID()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", vm, n))
	sum[6] = sum[6]&0x0f | 0x80 // version 8: made up by us
	sum[8] = sum[8]&0x3f | 0x80
	return formatUUID(golibvirt.UUID(sum[:16]))
}

func parseUUID(s string) (golibvirt.UUID, error) {
	var u golibvirt.UUID
	if len(s) != 36 || strings.Count(s, "-") != 4 {
		return u, fmt.Errorf("%q is no uuid", s)
	}
	n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(s, "-", "")))
	if err != nil || n != len(u) {
		return u, fmt.Errorf("%q is no uuid", s)
	}
	return u, nil
}

func formatUUID(u golibvirt.UUID) string {
	h := hex.EncodeToString(u[:])
	return h[0:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// macOf is the address of the VM's n-th network card: the same at every define.
func macOf(vm hcp.VMID, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "mac/%s/%d", vm, n))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum[0], sum[1], sum[2])
}

// Volumes bear the VM's whole id: nobody else's volume has such a name.
func diskName(vm hcp.VMID) string { return string(vm) + ".qcow2" }
func seedName(vm hcp.VMID) string { return string(vm) + "-seed.iso" }
