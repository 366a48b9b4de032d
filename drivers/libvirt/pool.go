package libvirt

import (
	"context"
	"errors"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
)

// poolLocks serialises what changes a pool: libvirt refuses a refresh during an
// upload, and the other way round.
type poolLocks struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
}

func (p *poolLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	p.mu.Lock()
	if p.locks == nil {
		p.locks = map[string]chan struct{}{}
	}
	l, ok := p.locks[name]
	if !ok {
		l = make(chan struct{}, 1)
		p.locks[name] = l
	}
	p.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, busy.WithCause(ctx.Err())
	}
}

// patiently repeats f while the pool is busy with work of somebody else.
func patiently(ctx context.Context, f func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f()
		if err == nil || classify(err, opVolume).Reason != busy.Reason {
			return err
		}
		if !waited(ctx, pause) {
			return err
		}
	}
}

// waited waits d and reports whether ctx is still on.
func waited(ctx context.Context, d time.Duration) bool {
	t, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-t.Done()
	return ctx.Err() == nil
}

// ensurePool finds the pool, active. Only the cluster's own pool is made when it
// is missing: another one that a zone names must be there.
func (d *Driver) ensurePool(ctx context.Context, h *host, name string) (golibvirt.StoragePool, error) {
	pool, err := call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.StoragePool, error) { return lv.StoragePoolLookupByName(name) })
	if isCode(err, codeNoPool) {
		if name != d.opts.pool {
			return pool, hcp.Errorf(hcp.CodeConflict, "pool_missing", "the storage that the zone names is not there").
				WithHint("an operator makes the pool on every host, or changes the zone")
		}
		pool, err = d.makePool(ctx, h)
	}
	if err != nil {
		return pool, fail(err, opSetup)
	}
	active, err := call(ctx, h, func(lv *golibvirt.Libvirt) (int32, error) { return lv.StoragePoolIsActive(pool) })
	if err == nil && active == 0 {
		err = run(ctx, h, func(lv *golibvirt.Libvirt) error {
			return lv.StoragePoolCreate(pool, golibvirt.StoragePoolCreateWithBuild)
		})
		if isCode(err, codeOperationInvalid, codeOperationFailed) { // somebody else was first
			active, again := call(ctx, h, func(lv *golibvirt.Libvirt) (int32, error) { return lv.StoragePoolIsActive(pool) })
			if again == nil && active == 1 {
				err = nil
			}
		}
	}
	return pool, fail(err, opSetup)
}

func (d *Driver) makePool(ctx context.Context, h *host) (golibvirt.StoragePool, error) {
	unlock, err := h.pools.lock(ctx, d.opts.pool)
	if err != nil {
		return golibvirt.StoragePool{}, err
	}
	defer unlock()
	lookup := func(lv *golibvirt.Libvirt) (golibvirt.StoragePool, error) {
		return lv.StoragePoolLookupByName(d.opts.pool)
	}
	if pool, err := call(ctx, h, lookup); err == nil {
		return pool, nil
	}
	xml, err := poolXML(d.opts.pool, d.opts.poolPath)
	if err != nil {
		return golibvirt.StoragePool{}, err
	}
	pool, err := call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.StoragePool, error) { return lv.StoragePoolDefineXML(xml, 0) })
	if err != nil {
		if there, again := call(ctx, h, lookup); again == nil { // another process was first
			return there, nil
		}
		return pool, err
	}
	if err := run(ctx, h, func(lv *golibvirt.Libvirt) error { return lv.StoragePoolSetAutostart(pool, 1) }); err != nil {
		return pool, err
	}
	return pool, nil
}

// ensureNetwork finds a network and starts it when it is not active.
func ensureNetwork(ctx context.Context, h *host, name string) (started bool, err error) {
	net, err := call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.Network, error) { return lv.NetworkLookupByName(name) })
	if err != nil {
		return false, fail(err, opSetup)
	}
	isActive := func(lv *golibvirt.Libvirt) (int32, error) { return lv.NetworkIsActive(net) }
	active, err := call(ctx, h, isActive)
	if err != nil || active == 1 {
		return false, fail(err, opSetup)
	}
	err = run(ctx, h, func(lv *golibvirt.Libvirt) error { return lv.NetworkCreate(net) })
	if err != nil {
		if active, again := call(ctx, h, isActive); again == nil && active == 1 { // somebody else was first
			return false, nil
		}
	}
	return err == nil, fail(err, opSetup)
}

// image is a volume that disks are cloned from.
type image struct {
	path, format string
	capacity     uint64
}

func findVolume(ctx context.Context, h *host, pool golibvirt.StoragePool, name string) (golibvirt.StorageVol, bool, error) {
	vol, err := call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.StorageVol, error) {
		return lv.StorageVolLookupByName(pool, name)
	})
	if isCode(err, codeNoVolume) {
		return vol, false, nil
	}
	return vol, err == nil, err
}

func describeVolume(ctx context.Context, h *host, vol golibvirt.StorageVol) (libvirtxml.StorageVolume, error) {
	var v libvirtxml.StorageVolume
	raw, err := call(ctx, h, func(lv *golibvirt.Libvirt) (string, error) { return lv.StorageVolGetXMLDesc(vol, 0) })
	if err != nil {
		return v, err
	}
	return v, v.Unmarshal(raw)
}

// deleteVolume removes a volume; one that is not there is success.
func deleteVolume(ctx context.Context, h *host, poolName string, vol golibvirt.StorageVol) error {
	unlock, err := h.pools.lock(ctx, poolName)
	if err != nil {
		return err
	}
	defer unlock()
	err = patiently(ctx, func() error {
		return run(ctx, h, func(lv *golibvirt.Libvirt) error { return lv.StorageVolDelete(vol, 0) })
	})
	if isCode(err, codeNoVolume) {
		return nil
	}
	return err
}

// createVolume makes a volume that is not there yet.
func createVolume(ctx context.Context, h *host, pool golibvirt.StoragePool, xml string) (golibvirt.StorageVol, error) {
	var vol golibvirt.StorageVol
	unlock, err := h.pools.lock(ctx, pool.Name)
	if err != nil {
		return vol, err
	}
	defer unlock()
	err = patiently(ctx, func() (err error) {
		vol, err = call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.StorageVol, error) { return lv.StorageVolCreateXML(pool, xml, 0) })
		return err
	})
	return vol, err
}

// renew makes a volume of ours afresh: what an earlier, cut attempt left has no
// machine yet and is not trusted.
func renew(ctx context.Context, h *host, pool golibvirt.StoragePool, name, xml string) (golibvirt.StorageVol, error) {
	vol, err := createVolume(ctx, h, pool, xml)
	if !isCode(err, codeVolumeExists) {
		return vol, err
	}
	old, there, err := findVolume(ctx, h, pool, name)
	if err != nil {
		return vol, err
	}
	if there {
		if err := deleteVolume(ctx, h, pool.Name, old); err != nil {
			return vol, err
		}
	}
	return createVolume(ctx, h, pool, xml)
}

// poolName is the pool of a machine.
func (d *Driver) poolName(s drivers.Spec) string { return orDefault(s.Pool, d.opts.pool) }

// poolsToSearch are the pools where volumes of a machine may be.
func (d *Driver) poolsToSearch(ctx context.Context, h *host) ([]golibvirt.StoragePool, error) {
	pools, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([]golibvirt.StoragePool, error) {
		p, _, err := lv.ConnectListAllStoragePools(1, golibvirt.ConnectListStoragePoolsActive)
		return p, err
	})
	return pools, err
}

var errNoImage = errors.New("the image's volume is not on the host")
