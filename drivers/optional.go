package drivers

import (
	"context"
	"io"

	"github.com/lotuscloud/hcp"
)

// A capability exists exactly when the driver implements its interface and the
// probed cluster supports it. No method only says "not supported".

// Rebooter restarts a machine and can prove that it happened. Without it a
// reboot is a shutdown and a start, two verifiable steps.
type Rebooter interface {
	Reboot(ctx context.Context, tok Token, ref hcp.ProviderRef) (Task, error)
}

// Watcher pushes hints that something changed; truth is always a later read.
type Watcher interface {
	// Watch calls hint with a VM id (or "" for "look at everything") until ctx ends or
	// the stream breaks, then returns why.
	Watch(ctx context.Context, hint func(hcp.VMID)) error
}

// ImageImporter brings an image file to the cluster and returns its reference there.
type ImageImporter interface {
	// ImportImage is idempotent by (name, sha256).
	ImportImage(ctx context.Context, name, sha256 string, size int64, content io.Reader) (artefact string, err error)
}

// Optional maps each capability that stands for an interface to a test for it.
func Optional() map[hcp.Capability]func(Driver) bool {
	return map[hcp.Capability]func(Driver) bool{
		hcp.CapReboot:      func(d Driver) bool { _, ok := d.(Rebooter); return ok },
		hcp.CapWatch:       func(d Driver) bool { _, ok := d.(Watcher); return ok },
		hcp.CapImageImport: func(d Driver) bool { _, ok := d.(ImageImporter); return ok },
	}
}
