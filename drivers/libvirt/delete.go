package libvirt

import (
	"context"
	"slices"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// NoteDiskKept says that a machine of somebody else names the disk, which was
// therefore left alone.
const NoteDiskKept = "disk_in_use_kept"

// all that libvirt keeps beside a definition
const undefineAll = golibvirt.DomainUndefineManagedSave | golibvirt.DomainUndefineSnapshotsMetadata |
	golibvirt.DomainUndefineNvram | golibvirt.DomainUndefineCheckpointsMetadata

// Delete removes the definition with its firmware state, then disk and seed, and
// looks whether they are gone. It goes on where an earlier, cut call stopped:
// the volumes' names are derived from the VM, not read from the definition.
func (d *Driver) Delete(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	p, ctx, end, err := d.begin(ctx, tok, ref)
	if err != nil {
		return drivers.Task{}, err
	}
	defer end()
	note := drivers.NoteAlreadyAbsent
	if p != nil {
		note = ""
		if err := d.undefine(ctx, p); err != nil {
			return drivers.Task{}, err
		}
	}
	kept := make([]bool, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) (err error) {
		kept[i], err = d.deleteVolumes(ctx, h, tok.VM)
		return err
	})
	for i, h := range d.hosts {
		// a host that is away matters only where the machine was
		if errs[i] != nil && (p == nil || h == p.host || h.name == ref.Host) {
			return drivers.Task{}, fail(errs[i], opDelete)
		}
	}
	if slices.Contains(kept, true) {
		note = NoteDiskKept
	}
	if err := d.verifyGone(ctx, ref, p); err != nil {
		return drivers.Task{}, err
	}
	return drivers.Finished(note), nil
}

func (d *Driver) undefine(ctx context.Context, p *place) error {
	state, _, err := domainState(ctx, p)
	if err != nil {
		return surelyNot(fail(err, opRead))
	}
	if state != stateShutoff {
		return hcp.Errorf(hcp.CodeConflict, "not_stopped", "the machine is not off").WithHint("stop it first")
	}
	// before the definition goes, which alone tells the log's name
	if err := d.deleteConsoleLog(ctx, p.host, p.dom.Name); err != nil {
		if libvirtCode(err) == 0 {
			return fail(err, opDelete)
		}
		d.log.Warn("the console log of a deleted machine stays on its host", "host", p.host.name, "machine", p.dom.Name, "error", err)
	}
	err = run(ctx, p.host, func(lv *golibvirt.Libvirt) error { return lv.DomainUndefineFlags(p.dom, undefineAll) })
	if err != nil && !isCode(err, codeNoDomain) {
		return fail(err, opDelete)
	}
	p.host.facts.drop(p.dom.UUID)
	p.host.agents.drop(p.dom.UUID)
	return nil
}

// verifyGone: the definition must be gone from its host, and, should somebody have
// started it in between, not run on as a transient one.
func (d *Driver) verifyGone(ctx context.Context, ref hcp.ProviderRef, p *place) error {
	if p == nil {
		return nil // every host said so
	}
	id, err := parseUUID(ref.ID)
	if err != nil {
		return fail(err, opDelete)
	}
	_, there, err := lookup(ctx, p.host, id)
	if err != nil {
		return fail(err, opDelete)
	}
	if there {
		return hcp.Errorf(hcp.CodeVerificationFailed, "still_there", "the hypervisor said that the machine was removed, but it is still there")
	}
	return nil
}

// deleteVolumes removes the VM's disk and seed from a host, but for a volume that
// a machine of somebody else names, or that is below somebody else's disk.
func (d *Driver) deleteVolumes(ctx context.Context, h *host, vm hcp.VMID) (kept bool, err error) {
	pools, err := d.poolsToSearch(ctx, h)
	if err != nil {
		return false, err
	}
	for _, pool := range pools {
		for _, name := range []string{diskName(vm), seedName(vm)} {
			vol, there, err := findVolume(ctx, h, pool, name)
			if isCode(err, codeOperationInvalid, codeNoPool) { // the pool was stopped or removed meanwhile
				continue
			}
			if err != nil {
				return kept, err
			}
			if !there {
				continue
			}
			path, err := call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) { return lv.StorageVolGetPath(vol) })
			if err != nil {
				return kept, err
			}
			used, err := d.usedByOthers(ctx, h, pool, path, vm)
			if err != nil {
				return kept, err
			}
			if used {
				kept = true
				continue
			}
			if err := deleteVolume(ctx, h, pool.Name, vol); err != nil {
				return kept, err
			}
			if _, there, err := findVolume(ctx, h, pool, name); err != nil {
				return kept, err
			} else if there {
				return kept, hcp.Errorf(hcp.CodeVerificationFailed, "still_there", "the hypervisor said that the disk was removed, but it is still there")
			}
		}
	}
	return kept, nil
}

// usedByOthers asks every definition on the host, afresh: it may have changed a
// moment ago, and every volume of the pool for what
// is below it.
func (d *Driver) usedByOthers(ctx context.Context, h *host, pool golibvirt.StoragePool, path string, vm hcp.VMID) (bool, error) {
	doms, err := listDomains(ctx, h)
	if err != nil {
		return false, err
	}
	for _, dom := range doms {
		f, err := d.factsOf(ctx, h, dom, fresh)
		if isCode(err, codeNoDomain) {
			continue
		}
		if err != nil {
			return false, err
		}
		if slices.Contains(f.paths, path) {
			return true, nil
		}
	}
	vols, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([]golibvirt.StorageVol, error) {
		v, _, err := lv.StoragePoolListAllVolumes(pool, 1, 0)
		return v, err
	})
	if err != nil {
		return false, err
	}
	for _, vol := range vols {
		if strings.HasPrefix(vol.Name, string(vm)) {
			continue
		}
		below, err := h.facts.backingOf(ctx, h, vol)
		if isCode(err, codeNoVolume) {
			continue
		}
		if err != nil {
			return false, err
		}
		if below == path {
			return true, nil
		}
	}
	return false, nil
}

func listDomains(ctx context.Context, h *host) ([]golibvirt.Domain, error) {
	return call(ctx, h, func(lv *golibvirt.Libvirt) ([]golibvirt.Domain, error) {
		d, _, err := lv.ConnectListAllDomains(1, golibvirt.ConnectListDomainsActive|golibvirt.ConnectListDomainsInactive)
		return d, err
	})
}
