package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/persistence"
)

// devWorld makes what --dev promises: an organisation, the projects demo and
// other with a token each, flavors, and a zone over a simulated hypervisor; with
// --libvirt a zone over the local one as well. Made once, found again later.
func (p *plane) devWorld(ctx context.Context, ready *readyFile) error {
	org, err := p.devOrg(ctx)
	if err != nil {
		return err
	}
	for _, project := range []struct {
		name, subject  string
		project, token *string
	}{
		{"demo", "dev@local", &ready.Project, &ready.Token},
		{"other", "other@local", &ready.OtherProject, &ready.OtherToken},
	} {
		*project.project = project.name
		if *project.token, err = p.devProject(ctx, org, project.name, project.subject); err != nil {
			return err
		}
	}
	if err := p.devFlavors(ctx); err != nil {
		return err
	}
	ready.SimURL = p.cfg.Sim
	if ready.SimURL == "" {
		if ready.SimURL, err = p.startSim(); err != nil {
			return err
		}
	}
	id, err := p.ensureCluster(ctx, hcp.Cluster{Name: "local-sim", Driver: "sim", Endpoint: ready.SimURL})
	if err != nil {
		return err
	}
	if err := p.devZone(ctx, "local", id); err != nil {
		return err
	}
	for name, artefact := range map[string]string{"tiny": "tiny-bios", "tiny-uefi": "tiny-uefi", "debian-12": "debian-12", "ubuntu-24.04": "ubuntu-24.04"} {
		if err := p.devImage(ctx, name, artefact, id); err != nil {
			return err
		}
	}
	if p.cfg.Libvirt == "" {
		return nil
	}
	if id, err = p.ensureCluster(ctx, hcp.Cluster{Name: "local-libvirt", Driver: "libvirt", Endpoint: p.cfg.Libvirt}); err != nil {
		return err
	}
	return p.devZone(ctx, "libvirt", id)
}

func (p *plane) devOrg(ctx context.Context) (hcp.OrgID, error) {
	o := hcp.Org{ID: hcp.OrgID(p.ids.New(hcp.KindOrg)), Name: "dev", CreatedAt: p.clock.Now()}
	r, err := record(persistence.RecordOrg, string(o.ID), o.Name, "", o)
	if err != nil {
		return "", err
	}
	r, err = p.put(ctx, r)
	return hcp.OrgID(r.ID), err
}

func (p *plane) devProject(ctx context.Context, org hcp.OrgID, name, subject string) (token string, err error) {
	pr := hcp.Project{ID: hcp.ProjectID(p.ids.New(hcp.KindProject)), Org: org, Name: name, CreatedAt: p.clock.Now()}
	r, err := record(persistence.RecordProject, string(pr.ID), name, string(org), pr)
	if err != nil {
		return "", err
	}
	if r, err = p.put(ctx, r); err != nil {
		return "", err
	}
	binding := hcp.RoleBinding{Subject: subject, Role: auth.ProjectOwner, Scope: hcp.ScopeTenant, Project: hcp.ProjectID(r.ID)}
	if err := p.bind(ctx, binding); err != nil {
		return "", err
	}
	return p.issuer.Issue(subject, hcp.ScopeTenant, tokenTTL)
}

func (p *plane) devFlavors(ctx context.Context) error {
	for _, f := range []hcp.Flavor{
		{Name: "tiny", VCPUs: 1, MemoryMiB: 256, DiskGiB: 1},
		{Name: "small", VCPUs: 1, MemoryMiB: 512, DiskGiB: 2},
		{Name: "medium", VCPUs: 2, MemoryMiB: 2048, DiskGiB: 10},
		{Name: "large", VCPUs: 4, MemoryMiB: 8192, DiskGiB: 40},
	} {
		f.ID, f.CreatedAt = hcp.FlavorID(p.ids.New(hcp.KindFlavor)), p.clock.Now()
		r, err := record(persistence.RecordFlavor, string(f.ID), f.Name, "", f)
		if err != nil {
			return err
		}
		if _, err := p.put(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) devZone(ctx context.Context, name string, id hcp.ClusterID) error {
	z := hcp.Zone{ID: hcp.ZoneID(p.ids.New(hcp.KindZone)), Name: name, Region: "local",
		Members: []hcp.ZoneCluster{{Cluster: id, CPURatio: 16, MemoryRatio: 1}}, CreatedAt: p.clock.Now()}
	r, err := record(persistence.RecordZone, string(z.ID), name, "", z)
	if err != nil {
		return err
	}
	_, err = p.put(ctx, r)
	return err
}

// devImage registers an image that the simulated hypervisor has. It has no bytes,
// so that its checksum is of its name.
func (p *plane) devImage(ctx context.Context, name, artefact string, id hcp.ClusterID) error {
	i := hcp.Image{ID: hcp.ImageID(p.ids.New(hcp.KindImage)), Name: name, Version: "1", State: hcp.ImageActive,
		Firmware: hcp.FirmwareBIOS, CreatedAt: p.clock.Now(),
		Artefacts: map[hcp.ClusterID]string{id: artefact}}
	if artefact == "tiny-uefi" {
		i.Firmware = hcp.FirmwareUEFI
	}
	i.SHA256 = simSum(artefact)
	r, err := record(persistence.RecordImage, string(i.ID), name, "", i)
	if err != nil {
		return err
	}
	_, err = p.put(ctx, r)
	return err
}

func simSum(artefact string) string {
	sum := sha256.Sum256([]byte(artefact))
	return hex.EncodeToString(sum[:])
}
