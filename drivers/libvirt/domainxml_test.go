package libvirt

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestDomainXML(t *testing.T) {
	opts, err := parseOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := drivers.Spec{VM: "vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071", Name: "web-4e5f6071", Project: "prj_<&\">", Hostname: "web",
		VCPUs: 2, MemoryMiB: 512, DiskGiB: 4, Firmware: hcp.FirmwareBIOS}
	uefi := spec
	uefi.Firmware = hcp.FirmwareUEFI
	for name, b := range map[string]blueprint{
		"bios": {spec: spec, uuid: spec.VM.UUID(), domainType: "qemu", disk: "/pool/disk.qcow2", seed: "/pool/seed.iso", networks: []string{"default", "lab"}, vncPassword: "PASSWORD", opts: opts},
		"uefi": {spec: uefi, uuid: spec.VM.UUID(), domainType: "kvm", disk: "/pool/disk.qcow2", seed: "/pool/seed.iso", networks: []string{"default"}, vncPassword: "PASSWORD", opts: opts},
	} {
		got, err := domainXML(b)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "domain-"+name+".xml")
		if *update {
			if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got+"\n" != string(want) {
			t.Errorf("%s differs (go test -update writes it anew):\n%s", file, got)
		}
		f, err := parseFacts(got)
		if err != nil {
			t.Fatal(err)
		}
		if f.mark.ID != spec.VM || f.mark.Project != spec.Project || f.vcpus != 2 || f.memoryMiB != 512 || f.disks != 1 || !f.hasAgent ||
			len(f.paths) != 2 || len(f.macs) != len(b.networks) {
			t.Errorf("%s reads back as %+v", name, f)
		}
	}
}

// Another element of the same name, a marker of nobody, a broken element: not ours.
func TestMarkerOfRubbishIsNone(t *testing.T) {
	for _, inner := range []string{
		"", "<vm id='vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071'/>", "<x:vm xmlns:x='urn:other' id='vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071'/>",
		"<x:vm xmlns:x='" + markerNS + "' id='../../etc'/>", "<x:vm xmlns:x='" + markerNS + "' id='vm_0193a5b2c4d87e0f9a1b2c3d4e5f6071'",
	} {
		var f facts
		f.readMetadata(inner)
		if f.mark.ID != "" {
			t.Errorf("%q reads as the marker of %s", inner, f.mark.ID)
		}
	}
}

func TestOptionsAndEndpointsAreChecked(t *testing.T) {
	for _, bad := range []map[string]string{{"pool": "a/b"}, {"pool_path": "var"}, {"pool_path": "/var/../etc"}, {"pol": "x"}, {"domain_type": "xen"}, {"network": ""}} {
		if _, err := parseOptions(bad); !hcp.IsCode(err, hcp.CodeInvalidRequest) {
			t.Errorf("options %v: %v", bad, err)
		}
	}
	for _, bad := range []string{"", ",", "xen:///system", "qemu:///session", "qemu://host/system", "qemu+unix:///system?socket=rel", "qemu+ssh://root:pw@h/system",
		"qemu+ssh://h/system", "qemu+tcp:///system", "qemu+tcp://h:1/system", "qemu+tcp://192.0.2.1/system", "qemu:///system,qemu:///system", "qemu:///system?keyfile=/etc/shadow", "http://x", "::"} {
		if _, err := parseEndpoints(bad, credentials{}); !hcp.IsCode(err, hcp.CodeInvalidRequest) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
	}
	eps, err := parseEndpoints("qemu:///system, qemu+unix:///system?socket=/x/sock , qemu+tcp://127.0.0.1:1/system?name=n", credentials{})
	if err != nil || len(eps) != 3 || eps[0].name != "local" || eps[1].name != "/x/sock" || eps[2].name != "n" {
		t.Errorf("%+v %v", eps, err)
	}
}

func TestImageFormatRefusesOtherFiles(t *testing.T) {
	qcow := func(change func([]byte)) []byte {
		h := make([]byte, 112)
		copy(h, "QFI\xfb")
		h[7] = 3
		change(h)
		return h
	}
	for name, c := range map[string]struct {
		head []byte
		want string
	}{
		"raw": {[]byte("anything"), "raw"}, "empty": {nil, "raw"}, "plain": {qcow(func([]byte) {}), "qcow2"},
		"backing": {qcow(func(h []byte) { h[15] = 1 }), ""}, "data file": {qcow(func(h []byte) { h[79] = 4 }), ""},
		"version": {qcow(func(h []byte) { h[7] = 9 }), ""}, "cut": {[]byte("QFI\xfb"), ""},
	} {
		got, err := imageFormat(c.head)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}
