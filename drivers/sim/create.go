package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"
	"strconv"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Provider ids have fifteen digits: with a million machines the odds that two
// ids meet are one in two thousand, and then Create says ref_taken.
const (
	lowestRef = 100_000_000_000_000
	refSpan   = 900_000_000_000_000
)

// onlyNetwork is the one network of a simulated hypervisor.
const onlyNetwork = "default"

// Prepare derives the provider id from the VM's, without a call: the same VM gets
// the same id again, and another one for each id that was taken.
func (d *Driver) Prepare(_ context.Context, _ drivers.Token, spec drivers.Spec, taken []string) (hcp.ProviderRef, error) {
	if slices.ContainsFunc(spec.Networks, func(n string) bool { return n != onlyNetwork }) {
		return hcp.ProviderRef{}, hcp.Errorf(hcp.CodeFeatureNotSupported, "unknown_network", "the cluster has no network of that name").
			WithHint("name no network for the cluster's default")
	}
	for n := uint32(0); ; n++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(spec.VM), n))
		id := strconv.FormatUint(lowestRef+binary.BigEndian.Uint64(sum[:])%refSpan, 10)
		if !slices.Contains(taken, id) {
			return hcp.ProviderRef{ID: id}, nil
		}
	}
}

// Create clones the image into a machine that carries the marker from its first moment.
func (d *Driver) Create(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef, spec drivers.Spec) (drivers.Task, error) {
	var a simapi.TaskAnswer
	err := d.api.call(ctx, simapi.OpClone, simapi.CloneRequest{
		ID: ref.ID, Name: spec.Name, Marker: string(tok.VM), Host: ref.Host, Image: spec.Image, Firmware: string(spec.Firmware),
		VCPUs: spec.VCPUs, MemoryMiB: spec.MemoryMiB, DiskGiB: spec.DiskGiB, Hostname: spec.Hostname, Networks: spec.Networks,
		SSHKeys: spec.SSHKeys, UserData: spec.UserData,
	}, &a)
	if said(err, simapi.CodeTaken) {
		return d.already(ctx, tok, ref)
	}
	if err != nil {
		return drivers.Task{}, classify(simapi.OpClone, err)
	}
	return taskOf(a.Task)
}

// already looks whose the machine under ref is. One of ours that is still being
// cloned is waited for through the task that clones it.
func (d *Driver) already(ctx context.Context, tok drivers.Token, ref hcp.ProviderRef) (drivers.Task, error) {
	m, err := d.get(ctx, ref)
	if err != nil {
		if hcp.IsCode(err, hcp.CodeNotFound) { // gone between the two calls: nothing is known for sure
			err = hcp.Errorf(hcp.CodeProviderUnavailable, "busy", "the hypervisor is at work on this machine").WithCause(err)
		}
		return drivers.Task{}, err
	}
	switch {
	case m.Marker != string(tok.VM):
		return drivers.Task{}, classify(simapi.OpClone, simapi.Errorf(simapi.CodeTaken, "id %s carries marker %q", ref.ID, m.Marker))
	case m.Lock != nil && m.Lock.Op == simapi.OpClone:
		return drivers.Task{Ref: hcp.TaskRef{ID: m.Lock.Task, Op: string(simapi.OpClone)}, Note: drivers.NoteAlreadyThere}, nil
	}
	return drivers.Finished(drivers.NoteAlreadyThere), nil
}

// Configure has nothing left to do: a clone sets sizes, seed and networks in one effect.
func (d *Driver) Configure(context.Context, drivers.Token, hcp.ProviderRef, drivers.Spec) (drivers.Task, bool, error) {
	return drivers.Finished(""), false, nil
}

// ImportImage reads the image to prove its digest and registers it; the
// simulated hypervisor has no use for the bytes.
func (d *Driver) ImportImage(ctx context.Context, name, digest string, size int64, content io.Reader) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, content)
	if err != nil {
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "image_unreadable", "the image could not be read to its end").WithCause(err)
	}
	if n != size || hex.EncodeToString(sum.Sum(nil)) != digest {
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "checksum_mismatch", "the image is not the one its size and sha256 say")
	}
	artefact := name + "-" + digest[:12]
	var a simapi.TaskAnswer
	if err := d.api.call(ctx, simapi.OpImportImage, simapi.ImportImageRequest{Name: artefact, SHA256: digest, Size: size}, &a); err != nil {
		return "", classify(simapi.OpImportImage, err)
	}
	return artefact, nil
}

// taskOf makes the driver's task of the hypervisor's.
func taskOf(t simapi.Task) (drivers.Task, error) {
	switch t.State {
	case simapi.TaskDone:
		return drivers.Finished(""), nil
	case simapi.TaskFailed:
		return drivers.Task{}, taskError(t)
	}
	return drivers.Task{Ref: hcp.TaskRef{ID: t.ID, Op: string(t.Op)}}, nil
}

func taskError(t simapi.Task) *hcp.Error {
	if t.Error == nil {
		return hcp.Errorf(hcp.CodeInternal, "provider_error", "the hypervisor failed to do this")
	}
	return classify(t.Op, t.Error)
}
