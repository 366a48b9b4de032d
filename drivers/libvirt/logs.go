package libvirt

import (
	"context"
	"path"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// logsPool is a pool over libvirt's own log folder. libvirt has no call to remove
// a log; a directory pool lets it remove the file as a volume. The pool is made
// when it is needed and holds nothing of its own.
const logsPool = "hcp-logs"

// deleteConsoleLog removes the serial log of a machine that is off: what a
// tenant's machine printed must not outlive it. Only the file that our own
// definitions name is touched.
func (d *Driver) deleteConsoleLog(ctx context.Context, h *host, machine string) error {
	unlock, err := h.pools.lock(ctx, logsPool)
	if err != nil {
		return err
	}
	pool, err := logFolder(ctx, h)
	if err == nil {
		err = patiently(ctx, func() error {
			return run(ctx, h, func(lv *golibvirt.Libvirt) error { return lv.StoragePoolRefresh(pool, 0) })
		})
	}
	unlock()
	if err != nil {
		return err
	}
	vol, there, err := findVolume(ctx, h, pool, consoleLog(machine))
	if err != nil || !there {
		return err
	}
	return deleteVolume(ctx, h, logsPool, vol)
}

// logFolder finds the pool over the log folder, whoever made it, or makes ours.
func logFolder(ctx context.Context, h *host) (golibvirt.StoragePool, error) {
	find := func(lv *golibvirt.Libvirt) (golibvirt.StoragePool, error) {
		return lv.StoragePoolLookupByTargetPath(path.Clean(consoleLogs))
	}
	pool, err := call(ctx, h, find)
	if !isCode(err, codeNoPool) {
		return pool, err
	}
	xml, err := poolXML(logsPool, path.Clean(consoleLogs))
	if err != nil {
		return pool, err
	}
	// transient: it is not there any more after a restart of the host, and not missed
	pool, err = call(ctx, h, func(lv *golibvirt.Libvirt) (golibvirt.StoragePool, error) { return lv.StoragePoolCreateXML(xml, 0) })
	if libvirtCode(err) != 0 { // another process may have been first
		if there, again := call(ctx, h, find); again == nil {
			return there, nil
		}
	}
	return pool, err
}

// consoleLog is the name of a machine's serial log in the log folder.
func consoleLog(machine string) string { return machine + "-serial.log" }
