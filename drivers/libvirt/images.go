package libvirt

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/clock"
)

// A volume cannot be renamed, so an upload goes into the volume of its final
// name, and an empty volume beside it, made last, says that it is whole. An
// image without its mark is never used, and is made afresh by the next import.
const completeMark = ".complete"

func complete(ctx context.Context, h *host, pool golibvirt.StoragePool, name string) (bool, error) {
	_, there, err := findVolume(ctx, h, pool, name+completeMark)
	return there, err
}

// artefactName is derived from the content's hash: one name never has two contents.
func artefactName(name, sum, format string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' && b.Len() > 0:
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	return fmt.Sprintf("image-%s-%s.%s", strings.Trim(b.String(), "-."), sum[:16], format)
}

// ImportImage streams an image to every host that answers and lacks it, and
// returns its volume's name, the same on all. content must be size bytes long
// and have the hash sha256. It is qcow2 when it begins so, else raw; a qcow2
// that refers to another file is refused: it could read the host's own.
func (d *Driver) ImportImage(ctx context.Context, name, sha string, size int64, content io.Reader) (string, error) {
	if raw, err := hex.DecodeString(sha); err != nil || len(raw) != sha256.Size || strings.ToLower(sha) != sha {
		return "", badImage("its sha256 is not 64 lower-case hex digits")
	}
	in := bufio.NewReaderSize(content, 64<<10)
	head, err := in.Peek(112)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", hcp.Errorf(hcp.CodeUnavailable, "image_source", "the image cannot be read").WithCause(err)
	}
	format, err := imageFormat(head)
	if err != nil {
		return "", err
	}
	artefact := artefactName(name, sha, format)

	type target struct {
		h    *host
		pool golibvirt.StoragePool
		pipe *io.PipeWriter
	}
	targets := make([]*target, len(d.hosts))
	have := make([]bool, len(d.hosts))
	errs := each(d.hosts, func(i int, h *host) error {
		bctx, cancel := d.bounded(ctx)
		defer cancel()
		pool, err := d.ensurePool(bctx, h, d.opts.pool)
		if err != nil {
			return err
		}
		if ok, err := wholeImage(bctx, h, pool, artefact); err != nil || ok {
			have[i] = ok
			return err
		}
		targets[i] = &target{h: h, pool: pool}
		return nil
	})
	var sinks []*target
	hosts := 0
	for i := range d.hosts {
		if errs[i] == nil {
			hosts++
		}
		if targets[i] != nil {
			sinks = append(sinks, targets[i])
		}
	}
	if hosts == 0 {
		return "", worst(errs)
	}
	if len(sinks) == 0 {
		return artefact, nil
	}

	results := make(chan error, len(sinks))
	sum := sha256.New()
	writers := make([]io.Writer, 0, len(sinks)+1)
	writers = append(writers, sum)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, t := range sinks {
		r, w := io.Pipe()
		t.pipe = w
		writers = append(writers, w)
		go func() {
			err := d.receive(ctx, t.h, t.pool, artefact, size, r)
			_ = r.CloseWithError(errors.Join(io.ErrClosedPipe, err)) // ends the copy below when this host fails
			results <- err
		}()
	}
	// A host is never sent more than was told: it would answer twice, which the
	// client library does not survive.
	n, copyErr := io.Copy(io.MultiWriter(writers...), io.LimitReader(in, size))
	if copyErr == nil {
		if _, more := in.ReadByte(); n != size || more == nil {
			copyErr = badImage("its size is not the one that was told")
		}
	}
	if copyErr == nil && hex.EncodeToString(sum.Sum(nil)) != sha {
		copyErr = badImage("its content has another sha256 than the one that was told")
	}
	for _, t := range sinks {
		_ = t.pipe.CloseWithError(copyErr) // nil is the end of the file
	}
	var first error
	for range sinks {
		if err := <-results; err != nil && (first == nil || hcp.IsCode(first, hcp.CodeInvalidRequest)) {
			first = fail(err, opVolume)
		}
	}
	if e, ok := errors.AsType[*hcp.Error](copyErr); ok {
		return "", e
	}
	if first != nil {
		return "", first
	}
	if copyErr != nil {
		return "", hcp.Errorf(hcp.CodeUnavailable, "image_source", "the image cannot be read").WithCause(copyErr)
	}
	return artefact, nil
}

func wholeImage(ctx context.Context, h *host, pool golibvirt.StoragePool, artefact string) (bool, error) {
	_, there, err := findVolume(ctx, h, pool, artefact)
	if err != nil || !there {
		return false, err
	}
	return complete(ctx, h, pool, artefact)
}

// receive fills the volume of one host and marks it. The reader ends without
// error only after the content was checked, so what is marked is right. A
// failure takes the volume away again.
func (d *Driver) receive(ctx context.Context, h *host, pool golibvirt.StoragePool, artefact string, size int64, content io.Reader) error {
	unlock, err := h.pools.lock(ctx, artefact) // two imports of one image: the second finds it whole
	if err != nil {
		return err
	}
	defer unlock()
	if ok, err := wholeImage(ctx, h, pool, artefact); err != nil || ok {
		if ok {
			_, err = io.Copy(io.Discard, content)
		}
		return err
	}
	xml, err := volumeXML(artefact, "raw", uint64(size), nil)
	if err != nil {
		return err
	}
	vol, err := renew(ctx, h, pool, artefact, xml)
	if err != nil {
		return err
	}
	err = h.fill(ctx, pool, vol, size, content, d.timeout)
	if err == nil {
		err = d.finishImage(ctx, h, pool, artefact)
	}
	if err != nil {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialWithin)
		defer cancel()
		if cerr := deleteVolume(cctx, h, pool.Name, vol); cerr != nil {
			d.log.Warn("a half image stays until it is imported again", "host", h.name, "volume", artefact, "error", cerr)
		}
	}
	return err
}

// fill uploads on a connection of its own. The pool stays locked: libvirt refuses
// to refresh a pool meanwhile. An upload has no deadline, but a host that takes
// nothing for as long as a call may last is given up: after an error in the middle
// of a stream the client library may wait for ever.
func (h *host) fill(ctx context.Context, pool golibvirt.StoragePool, vol golibvirt.StorageVol, size int64, content io.Reader, patience time.Duration) error {
	unlock, err := h.pools.lock(ctx, pool.Name)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	source := &paced{r: content, watch: func() (stop func() bool) { return clock.Real().AfterFunc(patience, cancel) }}
	source.rest(true)
	defer source.end()
	return h.stream(ctx, func(lv *golibvirt.Libvirt) error {
		return lv.StorageVolUpload(vol, source, 0, uint64(size), 0)
	})
}

// paced runs a timer while its reader is away, and not while the source is slow.
type paced struct {
	r     io.Reader
	watch func() (stop func() bool)

	mu    sync.Mutex // a stream that was given up may still read
	stop  func() bool
	ended bool
}

// rest stops the timer; with again it starts anew.
func (p *paced) rest(again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if again && !p.ended {
		p.stop = p.watch()
	}
}

func (p *paced) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.rest(false)
}

func (p *paced) Read(b []byte) (int, error) {
	p.rest(false)
	n, err := p.r.Read(b)
	p.rest(true)
	return n, err
}

// finishImage lets libvirt read the volume's format, checks it, and marks it.
func (d *Driver) finishImage(ctx context.Context, h *host, pool golibvirt.StoragePool, artefact string) error {
	unlock, err := h.pools.lock(ctx, pool.Name)
	if err != nil {
		return err
	}
	err = patiently(ctx, func() error {
		return run(ctx, h, func(lv *golibvirt.Libvirt) error { return lv.StoragePoolRefresh(pool, 0) })
	})
	unlock()
	if err != nil {
		return err
	}
	vol, there, err := findVolume(ctx, h, pool, artefact)
	if err == nil && !there {
		err = hcp.Errorf(hcp.CodeVerificationFailed, "still_missing", "the hypervisor took the image, but does not show it")
	}
	if err != nil {
		return err
	}
	v, err := describeVolume(ctx, h, vol)
	if err != nil {
		return err
	}
	img := asImage(v)
	if want := artefact[strings.LastIndexByte(artefact, '.')+1:]; img.format != want || v.BackingStore != nil && v.BackingStore.Path != "" {
		return badImage("the hypervisor reads another format in it")
	}
	mark, err := volumeXML(artefact+completeMark, "raw", 0, nil)
	if err != nil {
		return err
	}
	_, err = createVolume(ctx, h, pool, mark)
	if isCode(err, codeVolumeExists) {
		return nil
	}
	return err
}

// imageFormat reads the head of an image.
func imageFormat(head []byte) (string, error) {
	if len(head) < 4 || string(head[:4]) != "QFI\xfb" {
		return "raw", nil
	}
	if len(head) < 72 {
		return "", badImage("its qcow2 header is cut")
	}
	version := binary.BigEndian.Uint32(head[4:])
	if version != 2 && version != 3 {
		return "", badImage("its qcow2 version is not 2 or 3")
	}
	if binary.BigEndian.Uint64(head[8:]) != 0 {
		return "", badImage("it refers to a backing file")
	}
	const externalData = 1 << 2
	if version == 3 && (len(head) < 80 || binary.BigEndian.Uint64(head[72:])&externalData != 0) {
		return "", badImage("it keeps its data in another file")
	}
	return "qcow2", nil
}

func badImage(why string) *hcp.Error {
	return hcp.Errorf(hcp.CodeInvalidRequest, "invalid_image", "the image cannot be used: %s", why)
}
