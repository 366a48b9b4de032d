package libvirt

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// reservedFor is how long a prepared machine counts on its host before it is defined.
const reservedFor = 2 * time.Minute

// Prepare picks the host with the most memory that no machine is defined to
// use, among those that answer and have the image. The id is the VM's uuid.
func (d *Driver) Prepare(ctx context.Context, tok drivers.Token, spec drivers.Spec, taken []string) (hcp.ProviderRef, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	if err := checkSpec(spec); err != nil {
		return hcp.ProviderRef{}, err
	}
	var id string
	for n := 0; id == "" || slices.Contains(taken, id); n++ {
		id = candidate(spec.VM, n)
	}
	uuid, err := parseUUID(id)
	if err != nil {
		return hcp.ProviderRef{}, fail(err, opRead)
	}
	free := make([]int64, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) error {
		if _, err := d.findImage(ctx, h, spec); err != nil {
			return err
		}
		m, err := d.measure(ctx, h)
		free[i] = m.free.MemoryMiB
		return err
	})
	best := d.reserve(uuid, int64(spec.MemoryMiB), free, errs)
	if best == nil {
		return hcp.ProviderRef{}, worst(errs)
	}
	return hcp.ProviderRef{ID: id, Host: best.name}, nil
}

// reserve chooses among the hosts without error and reserves the memory there, in
// one step: of two that prepare at once the second must see the first. A tie goes
// to the first host of the endpoint.
func (d *Driver) reserve(id golibvirt.UUID, memoryMiB int64, free []int64, errs []error) *host {
	d.placing.Lock()
	defer d.placing.Unlock()
	var best *host
	var most int64
	for i, h := range d.hosts {
		if errs[i] != nil {
			continue
		}
		if f := free[i] - h.reserved(id, d.now()); best == nil || f > most {
			best, most = h, f
		}
	}
	if best != nil {
		best.mu.Lock()
		best.pending[id] = reservation{memoryMiB, d.now().Add(reservedFor)}
		best.mu.Unlock()
	}
	return best
}

// reserved is the memory in MiB that prepared machines other than id will use here.
func (h *host) reserved(id golibvirt.UUID, now time.Time) (sum int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, r := range h.pending {
		if now.After(r.until) {
			delete(h.pending, other)
		} else if other != id {
			sum += r.memoryMiB
		}
	}
	return sum
}

// worst is the answer when no host will do: that of a host which answered says
// more than that of one which did not.
func worst(errs []error) error {
	var out error
	for _, err := range errs {
		e := fail(err, opRead)
		if out == nil || !hcp.IsCode(e, hcp.CodeProviderUnavailable) && !hcp.IsCode(e, hcp.CodeProviderTimeout) {
			out = e
		}
	}
	return out
}

// findImage is the volume of the spec's artefact; nil when the spec has none.
func (d *Driver) findImage(ctx context.Context, h *host, spec drivers.Spec) (*image, error) {
	if spec.Image == "" {
		return nil, nil
	}
	none := hcp.Errorf(hcp.CodeNoCapacity, "no_artefact", "the image is not on this host").WithCause(errNoImage).
		WithHint("an operator imports the image again: it goes to every host that lacks it")
	if strings.Contains(spec.Image, "/") {
		return nil, none
	}
	for _, name := range slices.Compact([]string{d.poolName(spec), d.opts.pool}) {
		pool, err := call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.StoragePool, error) { return lv.StoragePoolLookupByName(name) })
		if isCode(err, codeNoPool) {
			continue
		}
		if err != nil {
			return nil, err
		}
		vol, there, err := findVolume(ctx, h, pool, spec.Image)
		if isCode(err, codeOperationInvalid) || err == nil && !there { // not active, or not in it
			continue
		}
		if err != nil {
			return nil, err
		}
		v, err := describeVolume(ctx, h, vol)
		if err != nil {
			return nil, err
		}
		if ok, err := complete(ctx, h, pool, spec.Image); err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue
		}
		return asImage(v), nil
	}
	return nil, none
}

func asImage(v libvirtxml.StorageVolume) *image {
	img := &image{format: "raw"}
	if v.Target != nil {
		img.path = v.Target.Path
		if v.Target.Format != nil && v.Target.Format.Type == "qcow2" {
			img.format = "qcow2"
		}
	}
	if v.Capacity != nil {
		img.capacity = v.Capacity.Value
	}
	return img
}

// Create makes disk, seed and domain, in this order: the define is the last step,
// so a domain with our marker is whole. It is done when it returns.
func (d *Driver) Create(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, spec drivers.Spec) (drivers.Task, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	if err := checkSpec(spec); err != nil {
		return drivers.Task{}, err
	}
	if tok.VM != spec.VM {
		return drivers.Task{}, foreign()
	}
	h, err := d.host(ref.Host)
	if err != nil {
		return drivers.Task{}, err
	}
	uuid, err := parseUUID(ref.ID)
	if err != nil {
		return drivers.Task{}, hcp.Errorf(hcp.CodeInvalidRequest, "invalid_ref", "the machine's id on the hypervisor is not valid").WithCause(err)
	}
	release, err := d.turn(ctx, tok.VM)
	if err != nil {
		return drivers.Task{}, err
	}
	defer release()
	if there, err := d.standing(ctx, h, uuid, spec); err != nil || there {
		return drivers.Finished(drivers.NoteAlreadyThere), err
	}
	b, err := d.plan(ctx, h, ref, spec)
	if err != nil {
		return drivers.Task{}, surelyNot(fail(err, opSetup))
	}
	if err := d.build(ctx, h, b); err != nil {
		return drivers.Task{}, err
	}
	h.mu.Lock()
	delete(h.pending, uuid)
	h.mu.Unlock()
	return drivers.Finished(""), nil
}

// standing looks before anything is made: the machine may be there already, a
// stranger may have its id or its name.
func (d *Driver) standing(ctx context.Context, h *host, uuid golibvirt.UUID, spec drivers.Spec) (bool, error) {
	dom, ok, err := lookup(ctx, h, uuid)
	if err != nil {
		return false, surelyNot(fail(err, opRead))
	}
	if ok {
		mark, err := readMarker(ctx, h, dom)
		if err != nil {
			return false, surelyNot(fail(err, opRead))
		}
		if mark.ID != spec.VM {
			return false, hcp.Errorf(hcp.CodeConflict, "ref_taken", "the id that was chosen for the machine is in use")
		}
		return true, nil
	}
	_, err = call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.Domain, error) { return lv.DomainLookupByName(spec.Name) })
	if err == nil {
		return false, hcp.Errorf(hcp.CodeConflict, "name_taken", "another machine on the hypervisor has the name that was chosen")
	}
	if !isCode(err, codeNoDomain) {
		return false, surelyNot(fail(err, opRead))
	}
	return false, nil
}

// works is a blueprint with what has to be made for it.
type works struct {
	blueprint
	pool golibvirt.StoragePool
	img  *image
}

// plan checks all that can be checked before anything is made.
func (d *Driver) plan(ctx context.Context, h *host, ref hcp.ProviderRef, spec drivers.Spec) (works, error) {
	w := works{blueprint: blueprint{spec: spec, uuid: ref.ID, opts: d.opts, networks: spec.Networks, vncPassword: newVNCPassword()}}
	if len(w.networks) == 0 {
		w.networks = []string{d.opts.network}
	}
	var err error
	if w.img, err = d.findImage(ctx, h, spec); err != nil {
		return w, err
	}
	if w.img != nil && uint64(spec.DiskGiB)<<30 < w.img.capacity {
		return w, hcp.Errorf(hcp.CodeInvalidRequest, "disk_too_small", "the disk is smaller than the image needs").
			WithDetail("required_gib", (w.img.capacity+1<<30-1)>>30)
	}
	if w.domainType, err = d.domainType(ctx, h); err != nil {
		return w, err
	}
	for _, n := range w.networks {
		if _, err := ensureNetwork(ctx, h, n); err != nil {
			return w, err
		}
	}
	w.pool, err = d.ensurePool(ctx, h, d.poolName(spec))
	return w, err
}

func (d *Driver) build(ctx context.Context, h *host, w works) error {
	var err error
	if w.spec.DiskGiB > 0 {
		if w.disk, err = makeDisk(ctx, h, w); err != nil {
			return fail(err, opVolume)
		}
	}
	if w.seed, err = makeSeed(ctx, h, w); err != nil {
		return fail(err, opVolume)
	}
	xml, err := domainXML(w.blueprint)
	if err != nil {
		return fail(err, opDefine)
	}
	// without VALIDATE: libvirtd would load its whole schema for each define
	_, err = call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.Domain, error) { return lv.DomainDefineXMLFlags(xml, 0) })
	if isCode(err, codeOperationFailed) { // says "exists" among much else: look, do not read
		uuid, _ := parseUUID(w.uuid)
		there, again := d.standing(ctx, h, uuid, w.spec)
		switch {
		case again != nil:
			return again
		case there:
			return nil
		}
	}
	return fail(err, opDefine)
}

func makeDisk(ctx context.Context, h *host, w works) (string, error) {
	name := diskName(w.spec.VM)
	xml, err := volumeXML(name, "qcow2", uint64(w.spec.DiskGiB)<<30, w.img)
	if err != nil {
		return "", err
	}
	vol, err := renew(ctx, h, w.pool, name, xml)
	if err != nil {
		return "", err
	}
	return call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) { return lv.StorageVolGetPath(vol) })
}

func makeSeed(ctx context.Context, h *host, w works) (string, error) {
	iso, err := seedISO(w.spec)
	if err != nil {
		return "", err
	}
	name := seedName(w.spec.VM)
	xml, err := volumeXML(name, "raw", uint64(len(iso)), nil)
	if err != nil {
		return "", err
	}
	vol, err := renew(ctx, h, w.pool, name, xml)
	if err != nil {
		return "", err
	}
	if err := upload(ctx, h, w.pool.Name, vol, iso); err != nil {
		return "", err
	}
	return call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) { return lv.StorageVolGetPath(vol) })
}

func upload(ctx context.Context, h *host, pool string, vol golibvirt.StorageVol, content []byte) error {
	unlock, err := h.pools.lock(ctx, pool)
	if err != nil {
		return err
	}
	defer unlock()
	return patiently(ctx, func() error {
		return h.stream(ctx, func(lv *golibvirt.Libvirt) error {
			return lv.StorageVolUpload(vol, bytes.NewReader(content), 0, uint64(len(content)), 0)
		})
	})
}

// Configure has nothing to do: Create makes the machine whole.
func (d *Driver) Configure(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, _ drivers.Spec) (drivers.Task, bool, error) {
	p, _, end, err := d.begin(ctx, tok, ref)
	if err != nil {
		return drivers.Task{}, false, err
	}
	defer end()
	if p == nil {
		return drivers.Task{}, false, hcp.NotFound("machine")
	}
	return drivers.Finished(drivers.NoteAlreadyThere), false, nil
}
