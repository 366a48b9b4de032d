package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// MaxUserData is the most user data a VM takes, in bytes.
const MaxUserData = 64 << 10

// plan is a create that has been checked and resolved.
type plan struct {
	in       v1.CreateVM
	vm       hcp.VM
	image    hcp.Image
	zones    []hcp.Zone // where it may go
	requires []hcp.Capability
	userData []byte
}

// createVM resolves names to pins, chooses a cluster and hands the VM to its
// owner, who accepts or refuses it in one commit.
func (s *Server) createVM(c *call) (answer, error) {
	var in v1.CreateVM
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	p, err := s.plan(c, in)
	if err != nil {
		return answer{}, err
	}
	if c.query.Get("dry_run") == "true" {
		return s.dryRun(c, p)
	}
	ranked, err := s.place(c.ctx, p)
	if err != nil {
		return answer{}, err
	}
	if len(p.userData) > 0 {
		if p.vm.UserData, err = s.Sealer.Seal(p.userData, hcp.UserDataContext(p.vm.ID)); err != nil {
			return answer{}, hcp.Errorf(hcp.CodeInternal, "seal", "the user data cannot be sealed").WithCause(err)
		}
	}
	c.target = hcp.LRNOfVM(ranked[0].Zone.Region, p.vm.Project, p.vm.ID)
	return s.createOn(c, p, ranked)
}

// createOn asks the owners in order of rank. Only a cluster that turned out full
// makes it ask the next: whoever refuses for another reason, or does not answer,
// may have accepted, and a second VM must not come of it.
func (s *Server) createOn(c *call, p *plan, ranked []hcp.Candidate) (answer, error) {
	const most = 3
	var full error
	for n, at := range ranked {
		if n == most {
			break
		}
		vm := p.vm
		vm.Region, vm.Zone, vm.ZoneName = at.Zone.Region, at.Zone.ID, at.Zone.Name
		vm.Cluster, vm.Pool = at.Cluster, at.Member.Pool
		vm.Image.Artefact = p.image.Artefacts[at.Cluster]
		a, err := s.do(c, hcp.Command{Verb: hcp.VerbCreate, Cluster: at.Cluster, VM: vm.ID,
			Create: &hcp.CreateVM{VM: vm, Claim: vm.Flavor.Sizes(), Start: vm.Desired.Power == hcp.PowerRunning}})
		switch {
		case hcp.IsCode(err, hcp.CodeNoCapacity):
			full = err
			s.infra.forget()
			continue
		case err != nil:
			return answer{}, err
		}
		return c.accepted(a), nil
	}
	return answer{}, full
}

// place ranks the clusters; it refuses only on a picture it has just taken.
func (s *Server) place(ctx context.Context, p *plan) ([]hcp.Candidate, error) {
	for _, fresh := range []bool{false, true} {
		pic, err := s.infra.get(ctx, fresh)
		if err != nil {
			return nil, err
		}
		req := hcp.PlaceRequest{Sizes: p.vm.Flavor.Sizes(), Image: p.image, Requires: p.requires}
		if len(p.zones) == 1 {
			req.Zone = p.zones[0].ID
		}
		ranked, rejected := hcp.Place(req, pic.candidates(p.zones))
		if len(ranked) > 0 {
			return ranked, nil
		}
		if fresh {
			return nil, hcp.PlaceRefusal(rejected)
		}
		// The picture may be old, and so may the image's artefacts.
		row, err := s.images.fresh(ctx, string(p.image.ID))
		if err != nil {
			return nil, err
		}
		p.image = row.value
	}
	panic("unreachable")
}

// plan checks everything that can be checked without the owner.
func (s *Server) plan(c *call, in v1.CreateVM) (*plan, error) {
	now := c.now()
	p := &plan{in: in}
	name := norm.NFC.String(in.Name)
	if err := hcp.CheckName(name); err != nil {
		return nil, err
	}
	image, err := findIn(c, s.images, in.Image, "image", "/image")
	if err != nil {
		return nil, err
	}
	flavor, err := findIn(c, s.flavors, in.Flavor, "flavor", "/flavor")
	if err != nil {
		return nil, err
	}
	if p.zones, err = s.zonesOf(c, in.Zone); err != nil {
		return nil, err
	}
	switch {
	case image.State == hcp.ImageRetired:
		return nil, hcp.Errorf(hcp.CodeConflict, "image_retired", "the image is retired and takes no new VM").WithHint("choose another image")
	case flavor.Retired:
		return nil, hcp.Errorf(hcp.CodeConflict, "flavor_retired", "the flavor is retired and takes no new VM").WithHint("choose another flavor")
	case flavor.VCPUs <= 0 || flavor.MemoryMiB <= 0 || flavor.DiskGiB <= 0:
		return nil, badField("/flavor", "flavor_too_small", "the flavor has no vCPU, memory or disk")
	case flavor.DiskGiB < image.MinDisk:
		return nil, badField("/flavor", "flavor_too_small", "the image needs a larger disk than the flavor has")
	case flavor.MemoryMiB < image.MinMemory:
		return nil, badField("/flavor", "flavor_too_small", "the image needs more memory than the flavor has")
	}
	if err := checkLabels(in.Labels); err != nil {
		return nil, err
	}
	for _, k := range in.SSHKeys {
		if why := sshKeyFault(k); why != "" {
			return nil, badField("/ssh_keys", "invalid_ssh_key", "an SSH key is not valid: "+why)
		}
	}
	for _, n := range in.Networks {
		if hcp.CheckName(n) != nil {
			return nil, badField("/networks", "invalid_name", "a network's name is not valid")
		}
	}
	if p.userData, err = userData(in); err != nil {
		return nil, err
	}
	p.image = image
	if image.Firmware == hcp.FirmwareUEFI {
		p.requires = append(p.requires, hcp.CapUEFI)
	}
	power := in.Power
	if power == "" {
		power = hcp.PowerRunning
	}
	vmID := id[hcp.VMID](s, hcp.KindVM)
	p.vm = hcp.VM{
		ID: vmID, Name: name, Org: c.project.Org, Project: c.project.ID, Owner: c.identity.Subject,
		Lifecycle: hcp.LifecycleCreating, Power: hcp.PowerStopped, Desired: hcp.Desired{Power: power},
		Image:    hcp.ImagePin{ID: image.ID, Name: image.Name, Version: image.Version, SHA256: image.SHA256, Firmware: image.Firmware},
		Flavor:   flavor.Pin(),
		Hostname: hcp.Hostname(name, vmID), ProviderName: hcp.ProviderName(name, vmID),
		SSHKeys: in.SSHKeys, Networks: in.Networks, Labels: in.Labels, Description: in.Description,
		DeletionProtection: in.DeletionProtection, Generation: 1, CreatedAt: now, UpdatedAt: now,
	}
	return p, nil
}

// findIn resolves a reference in a body; the error names the field.
func findIn[T any](c *call, t *table[T], value, typ, pointer string) (T, error) {
	var none T
	ref, err := c.ref(value, typ)
	if err == nil {
		var r row[T]
		if r, err = t.find(c.ctx, ref); err == nil {
			return r.value, nil
		}
	}
	e := hcp.AsError(err)
	if e.Code == hcp.CodeNotFound || e.Code == hcp.CodeInvalidRequest {
		named := *e
		named.Fields = []hcp.FieldError{{Pointer: pointer, Reason: e.Reason, Detail: e.Message}}
		return none, &named
	}
	return none, err
}

func (s *Server) zonesOf(c *call, zone string) ([]hcp.Zone, error) {
	if zone != "" {
		z, err := findIn(c, s.zones, zone, "zone", "/zone")
		return []hcp.Zone{z}, err
	}
	rows, err := s.zones.list(c.ctx)
	if err != nil {
		return nil, err
	}
	zones := make([]hcp.Zone, 0, len(rows))
	for _, r := range rows {
		zones = append(zones, r.value)
	}
	return zones, nil
}

func userData(in v1.CreateVM) ([]byte, error) {
	data, pointer := []byte(in.UserData), "/user_data"
	if in.UserDataBase64 != "" {
		if in.UserData != "" {
			return nil, badField("/user_data_base64", "not_both", "only one of user_data and user_data_base64 can be given")
		}
		pointer = "/user_data_base64"
		var err error
		if data, err = base64.StdEncoding.Strict().DecodeString(in.UserDataBase64); err != nil {
			return nil, badField(pointer, "wrong_format", "the user data is not valid base64")
		}
	}
	if len(data) > MaxUserData {
		e := hcp.AsError(badField(pointer, "user_data_too_large", "the user data is larger than 65536 bytes"))
		return nil, e.WithDetail("limit", MaxUserData)
	}
	return data, nil
}

var sshKeyTypes = []string{"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}

// sshKeyFault says why the line is no OpenSSH public key; empty when it is one.
func sshKeyFault(line string) string {
	if len(line) > 16<<10 || strings.ContainsAny(line, "\r\n\x00") {
		return "it is not one line"
	}
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return "it has no type and key"
	}
	if !slices.Contains(sshKeyTypes, fields[0]) {
		return "its type is not known"
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(blob) < 4 {
		return "its key is not base64"
	}
	n := binary.BigEndian.Uint32(blob)
	if uint64(n) >= uint64(len(blob)-4) || string(blob[4:4+n]) != fields[0] {
		return "its key is of another type, or cut"
	}
	return ""
}
