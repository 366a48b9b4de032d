package libvirt

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lotuscloud/hcp"
)

// options of a cluster, from its registration.
type options struct {
	// pool (default "hcp") holds images, disks and seeds. When it is missing on a host,
	// it is made there as a directory pool at pool_path (default /var/lib/libvirt/hcp).
	pool, poolPath string
	// network (default "default") is for machines that name none; it is started when it is not active.
	network string
	// machine_bios (default pc) and machine_uefi (default q35)
	machineBIOS, machineUEFI string
	// machine is machine_bios by its short name
	// domain_type: auto (default: kvm where the host offers it), kvm, or qemu for emulation
	domainType string
}

func parseOptions(in map[string]string) (options, error) {
	o := options{pool: "hcp", poolPath: "/var/lib/libvirt/hcp", network: "default", machineBIOS: "pc", machineUEFI: "q35", domainType: "auto"}
	known := map[string]*string{"pool": &o.pool, "pool_path": &o.poolPath, "network": &o.network,
		"machine_bios": &o.machineBIOS, "machine_uefi": &o.machineUEFI, "domain_type": &o.domainType,
		"machine": &o.machineBIOS, "concurrency": new(string)} // concurrency is the provider actor's
	for key, value := range in {
		dst, ok := known[key]
		if !ok {
			return o, badOption(key, fmt.Sprintf("it is not known; known are %s", strings.Join(sorted(known), ", ")))
		}
		if value == "" || strings.ContainsAny(value, "\x00\n<>&'\"") {
			return o, badOption(key, "it is empty or has characters that do not belong there")
		}
		*dst = value
	}
	if strings.Contains(o.pool, "/") {
		return o, badOption("pool", "it contains a slash")
	}
	if !path.IsAbs(o.poolPath) || path.Clean(o.poolPath) != o.poolPath || o.poolPath == "/" {
		return o, badOption("pool_path", "it is not a clean absolute path")
	}
	if !slices.Contains([]string{"auto", "kvm", "qemu"}, o.domainType) {
		return o, badOption("domain_type", "it is none of auto, kvm and qemu")
	}
	return o, nil
}

func sorted(m map[string]*string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func badOption(key, why string) error {
	return &hcp.Error{Code: hcp.CodeInvalidRequest, Reason: "invalid_option", Message: "an option of the cluster is not valid: " + why,
		Fields: []hcp.FieldError{{Pointer: "/options/" + key, Reason: "invalid_option", Detail: why}}}
}
