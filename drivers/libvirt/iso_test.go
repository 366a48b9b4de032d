package libvirt

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/lotuscloud/hcp/drivers"
)

// readTree reads the root directory of one of the two trees: the primary one, or
// Joliet's, which is the one that Linux takes.
func readTree(t *testing.T, iso []byte, kind byte) (label string, files map[string][]byte) {
	t.Helper()
	d := iso[(15+int(kind))*isoSector:]
	if d[0] != kind || string(d[1:6]) != "CD001" || kind == 2 && string(d[88:91]) != "%/E" {
		t.Fatalf("there is no descriptor of kind %d", kind)
	}
	text := func(raw []byte) string {
		if kind == 1 {
			return string(raw)
		}
		var b strings.Builder
		for i := 0; i+1 < len(raw); i += 2 {
			b.WriteRune(rune(binary.BigEndian.Uint16(raw[i:])))
		}
		return b.String()
	}
	at, size := binary.LittleEndian.Uint32(d[158:]), binary.LittleEndian.Uint32(d[166:])
	dir := iso[at*isoSector : at*isoSector+size]
	files = map[string][]byte{}
	for len(dir) > 0 && dir[0] > 0 {
		r := dir[:dir[0]]
		dir = dir[dir[0]:]
		if r[25]&2 != 0 {
			continue
		}
		from := binary.LittleEndian.Uint32(r[2:]) * isoSector
		if from != binary.BigEndian.Uint32(r[6:])*isoSector {
			t.Error("the two ways to write a number differ")
		}
		files[strings.TrimSuffix(text(r[33:33+r[32]]), ";1")] = iso[from : from+binary.LittleEndian.Uint32(r[10:])]
	}
	return strings.TrimRight(text(d[40:72]), " "), files
}

// G06: UTF-8 user data came out mangled.
func TestG06_SeedKeepsUserDataByteForByte(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, user := range [][]byte{every, []byte("\xef\xbb\xbf#cloud-config\nname: \xc3\xa4\xe2\x82\xac\r\n"), bytes.Repeat([]byte{0xff}, isoSector), make([]byte, 3*isoSector+1)} {
		iso, err := seedISO(drivers.Spec{VM: "vm_1", Hostname: "web", UserData: user})
		if err != nil {
			t.Fatal(err)
		}
		_, files := readTree(t, iso, 2)
		if !bytes.Equal(files["user-data"], user) {
			t.Errorf("%d bytes of user data came out as %d others", len(user), len(files["user-data"]))
		}
		if want := "instance-id: \"vm_1\"\nlocal-hostname: \"web\"\n"; string(files["meta-data"]) != want {
			t.Errorf("meta-data is %q, want %q", files["meta-data"], want)
		}
		if len(files) != 3 || len(iso)%isoSector != 0 {
			t.Errorf("%d files in %d bytes", len(files), len(iso))
		}
	}
}

func TestSeedReadsTheSameInBothTrees(t *testing.T) {
	iso, err := seedISO(drivers.Spec{VM: "vm_1", Hostname: "web", SSHKeys: []string{"ssh-ed25519 AAAA me@\"home\": x"}})
	if err != nil {
		t.Fatal(err)
	}
	label, primary := readTree(t, iso, 1)
	jlabel, joliet := readTree(t, iso, 2)
	if label != "cidata" || jlabel != "cidata" {
		t.Errorf("labels %q and %q", label, jlabel)
	}
	if len(primary) != 3 || len(joliet) != 3 {
		t.Errorf("%d and %d files", len(primary), len(joliet))
	}
	for name, raw := range primary {
		if !bytes.Equal(raw, joliet[name]) {
			t.Errorf("%s reads as %q and as %q", name, raw, joliet[name])
		}
	}
	if want := "#cloud-config\nssh_authorized_keys:\n  - \"ssh-ed25519 AAAA me@\\\"home\\\": x\"\n"; string(joliet["user-data"]) != want {
		t.Errorf("without user data the keys are in %q, want %q", joliet["user-data"], want)
	}
	again, _ := seedISO(drivers.Spec{VM: "vm_1", Hostname: "web", SSHKeys: []string{"ssh-ed25519 AAAA me@\"home\": x"}})
	if !bytes.Equal(iso, again) {
		t.Error("the same seed has other bytes the second time")
	}
}
