package libvirt

import (
	"crypto/rand"
	"fmt"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// blueprint is all that a domain's XML is made from.
type blueprint struct {
	spec        drivers.Spec
	uuid        string
	domainType  string // kvm or qemu
	disk, seed  string // paths on the host
	networks    []string
	vncPassword string
	opts        options
}

const (
	agentChannel = "org.qemu.guest_agent.0"
	consoleLogs  = "/var/log/libvirt/qemu/" // virtlogd writes there and nowhere else
)

// domainXML is the one builder of definitions.
func domainXML(b blueprint) (string, error) {
	s := b.spec
	uefi := s.Firmware == hcp.FirmwareUEFI
	dom := libvirtxml.Domain{
		Type:        b.domainType,
		Name:        s.Name,
		UUID:        b.uuid,
		Title:       title(s.Hostname),
		Description: "made by HCP; change it through HCP",
		Metadata:    &libvirtxml.DomainMetadata{XML: markerXML(s)},
		Memory:      &libvirtxml.DomainMemory{Value: uint(s.MemoryMiB), Unit: "MiB"},
		VCPU:        &libvirtxml.DomainVCPU{Value: uint(s.VCPUs)},
		OS:          guestOS(b, uefi),
		Features:    &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}, APIC: &libvirtxml.DomainFeatureAPIC{}},
		Clock:       &libvirtxml.DomainClock{Offset: "utc"},
		OnPoweroff:  "destroy", OnReboot: "restart", OnCrash: "destroy",
		Devices: devices(b, uefi),
	}
	if b.domainType == "kvm" {
		dom.CPU = &libvirtxml.DomainCPU{Mode: "host-model"}
	}
	return dom.Marshal()
}

// title is for people; libvirt refuses one with a line break.
func title(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

func guestOS(b blueprint, uefi bool) *libvirtxml.DomainOS {
	os := &libvirtxml.DomainOS{
		Type:        &libvirtxml.DomainOSType{Arch: "x86_64", Machine: b.opts.machineBIOS, Type: "hvm"},
		BootDevices: []libvirtxml.DomainBootDevice{{Dev: "hd"}},
	}
	if uefi {
		os.Type.Machine = b.opts.machineUEFI
		os.Firmware = "efi"
		os.FirmwareInfo = &libvirtxml.DomainOSFirmwareInfo{Features: []libvirtxml.DomainOSFirmwareFeature{
			{Enabled: "no", Name: "enrolled-keys"}, {Enabled: "no", Name: "secure-boot"}}}
	}
	return os
}

func devices(b blueprint, uefi bool) *libvirtxml.DomainDeviceList {
	list := &libvirtxml.DomainDeviceList{
		Serials: []libvirtxml.DomainSerial{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainSerialTarget{},
			Log:    &libvirtxml.DomainChardevLog{File: consoleLogs + consoleLog(b.spec.Name), Append: "on"},
		}},
		Consoles: []libvirtxml.DomainConsole{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainConsoleTarget{Type: "serial"},
		}},
		Channels: []libvirtxml.DomainChannel{{
			Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{}},
			Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: agentChannel}},
		}},
		// A password can be set later only if there was one at the start: this one
		// nobody knows, and it has expired.
		Graphics: []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{Port: -1, AutoPort: "yes", Listen: "127.0.0.1",
			Passwd: b.vncPassword, PasswdValidTo: "1970-01-01T00:00:01"}}},
		Videos:     []libvirtxml.DomainVideo{{Model: libvirtxml.DomainVideoModel{Type: "vga"}}},
		MemBalloon: &libvirtxml.DomainMemBalloon{Model: "virtio"},
		RNGs: []libvirtxml.DomainRNG{{Model: "virtio",
			Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}}}},
	}
	if b.disk != "" {
		list.Disks = append(list.Disks, libvirtxml.DomainDisk{
			Device: "disk",
			Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "qcow2", Discard: "unmap"},
			Source: fileSource(b.disk),
			Target: &libvirtxml.DomainDiskTarget{Dev: "vda", Bus: "virtio"},
			Serial: "root-" + b.spec.VM.Short(),
		})
	}
	if b.seed != "" {
		cd := &libvirtxml.DomainDiskTarget{Dev: "hda", Bus: "ide"}
		if uefi || strings.Contains(b.opts.machineBIOS, "q35") {
			// not SATA: the kernels of cloud images leave out its driver
			cd = &libvirtxml.DomainDiskTarget{Dev: "sda", Bus: "scsi"}
			list.Controllers = append(list.Controllers, libvirtxml.DomainController{Type: "scsi", Model: "virtio-scsi"})
		}
		list.Disks = append(list.Disks, libvirtxml.DomainDisk{
			Device:   "cdrom",
			Driver:   &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"},
			Source:   fileSource(b.seed),
			Target:   cd,
			ReadOnly: &libvirtxml.DomainDiskReadOnly{},
		})
	}
	for i, n := range b.networks {
		list.Interfaces = append(list.Interfaces, libvirtxml.DomainInterface{
			MAC:    &libvirtxml.DomainInterfaceMAC{Address: macOf(b.spec.VM, i)},
			Source: &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: n}},
			Model:  &libvirtxml.DomainInterfaceModel{Type: "virtio"},
		})
	}
	return list
}

func fileSource(path string) *libvirtxml.DomainDiskSource {
	return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}}
}

// newVNCPassword is eight characters, all that VNC knows.
func newVNCPassword() string { return rand.Text()[:8] }

// volumeXML describes a volume. A backing file comes from a volume of ours, never
// from a caller, and its format is always said: else QEMU would guess it from
// content that a guest may write.
func volumeXML(name, format string, bytes uint64, backing *image) (string, error) {
	v := libvirtxml.StorageVolume{
		Type:     "file",
		Name:     name,
		Capacity: &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: bytes},
		Target:   &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: format}},
	}
	if format == "qcow2" {
		v.Allocation = &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: 0}
	}
	if backing != nil {
		v.BackingStore = &libvirtxml.StorageVolumeBackingStore{Path: backing.path,
			Format: &libvirtxml.StorageVolumeTargetFormat{Type: backing.format}}
	}
	return v.Marshal()
}

func poolXML(name, path string) (string, error) {
	p := libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{Path: path,
		Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: "0711"}}}
	return p.Marshal()
}

// checkSpec refuses what cannot become a machine, before anything is done.
func checkSpec(s drivers.Spec) error {
	bad := func(why string) error {
		return hcp.Errorf(hcp.CodeInvalidRequest, "invalid_spec", "the machine cannot be made: %s", why)
	}
	switch {
	case !hcp.IsID(hcp.KindVM, string(s.VM)):
		return bad("its id is not an id")
	case s.Name == "" || len(s.Name) > 100 || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || s.Name[0] == '.':
		return bad("its name on the hypervisor is not plain ASCII")
	case s.VCPUs < 1 || s.MemoryMiB < 1 || s.DiskGiB < 0:
		return bad("a size is not positive")
	case s.Firmware != hcp.FirmwareBIOS && s.Firmware != hcp.FirmwareUEFI && s.Firmware != "":
		return bad(fmt.Sprintf("firmware %q is not known", s.Firmware))
	}
	return nil
}
