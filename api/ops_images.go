package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"maps"
	"net/http"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *Server) opsImageView(c *call, i hcp.Image) (v1.OpsImage, error) {
	zones, err := s.zones.list(c.ctx)
	if err != nil {
		return v1.OpsImage{}, err
	}
	v := v1.OpsImage{Image: imageView(i, zones), Artefacts: i.Artefacts}
	if v.Artefacts == nil {
		v.Artefacts = map[hcp.ClusterID]string{}
	}
	return v, nil
}

func (s *Server) opsListImages(c *call) (answer, error) {
	rows, err := s.images.list(c.ctx)
	if err != nil {
		return answer{}, err
	}
	views := make([]v1.OpsImage, 0, len(rows))
	for _, r := range rows {
		v, err := s.opsImageView(c, r.value)
		if err != nil {
			return answer{}, err
		}
		views = append(views, v)
	}
	return ok(v1.Page[v1.OpsImage]{Items: views})
}

func (s *Server) opsGetImage(c *call) (answer, error) {
	r, err := the(c, s.images, "image", "image")
	if err != nil {
		return answer{}, err
	}
	v, err := s.opsImageView(c, r.value)
	if err != nil {
		return answer{}, err
	}
	return ok(v)
}

func (s *Server) createImage(c *call) (answer, error) {
	var in v1.CreateImage
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	name, err := cleanName(in.Name)
	if err != nil {
		return answer{}, err
	}
	i := hcp.Image{ID: id[hcp.ImageID](s, hcp.KindImage), Name: name, Version: in.Version, SHA256: in.SHA256, Firmware: in.Firmware,
		State: hcp.ImageActive, MinDisk: in.MinDiskGiB, MinMemory: in.MinMemoryMiB, CreatedAt: c.now()}
	return s.writeImage(c, i, 0, hcp.EventResourceCreated, http.StatusCreated)
}

func (s *Server) updateImage(c *call) (answer, error) {
	var in v1.UpdateImage
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	r, err := theFresh(c, s.images, "image", "image")
	if err != nil {
		return answer{}, err
	}
	if in.State != nil {
		r.value.State = *in.State
	}
	if in.MinDiskGiB != nil {
		r.value.MinDisk = *in.MinDiskGiB
	}
	if in.MinMemoryMiB != nil {
		r.value.MinMemory = *in.MinMemoryMiB
	}
	return s.writeImage(c, r.value, r.version, hcp.EventResourceUpdated, http.StatusOK)
}

func (s *Server) writeImage(c *call, i hcp.Image, version int64, event hcp.EventType, status int) (answer, error) {
	rec, err := record(persistence.RecordImage, string(i.ID), i.Name, "", version, i)
	if err != nil {
		return answer{}, err
	}
	view, err := s.opsImageView(c, i)
	if err != nil {
		return answer{}, err
	}
	defer s.images.forget()
	return s.commit(c, change{records: []persistence.RecordChange{rec}, event: event, subject: hcp.LRNOf("image", string(i.ID)),
		status: status, body: view})
}

func (s *Server) deleteImage(c *call) (answer, error) {
	r, err := theFresh(c, s.images, "image", "image")
	if err != nil {
		return answer{}, err
	}
	f := persistence.VMFilter{Page: persistence.Page{Limit: maxPageSize}}
	for {
		vms, err := s.Store.ListVMs(c.ctx, f)
		if err != nil {
			return answer{}, err
		}
		for _, k := range vms {
			if k.VM.Image.ID == r.value.ID {
				return answer{}, inUse("image", "a VM").(*hcp.Error).WithHint("retire it instead: no new VM takes it then")
			}
		}
		if len(vms) < f.Page.Limit {
			break
		}
		last := vmPosition(vms[len(vms)-1])
		f.Page.After = &last
	}
	defer s.images.forget()
	return s.drop(c, persistence.RecordImage, r.id, r.name, r.version, "image")
}

// putArtefact adds what one cluster has of the image: a file that passes through
// here, or a reference that the operator knows.
func (s *Server) putArtefact(c *call) (answer, error) {
	r, err := theFresh(c, s.images, "image", "image")
	if err != nil {
		return answer{}, err
	}
	target := c.target
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	c.target = target
	var artefact string
	if c.isUpload() {
		artefact, err = s.upload(c, r.value, cl)
	} else {
		var in v1.SetArtefact
		err = c.decode(&in)
		artefact = in.Artefact
	}
	if err != nil {
		return answer{}, err
	}
	for try := 0; ; try++ { // an upload takes long: others may have changed the record
		if r, err = s.images.fresh(c.ctx, r.id); err != nil {
			return answer{}, err
		}
		artefacts := maps.Clone(r.value.Artefacts)
		if artefacts == nil {
			artefacts = map[hcp.ClusterID]string{}
		}
		artefacts[cl.ID] = artefact
		r.value.Artefacts = artefacts
		a, err := s.writeImage(c, r.value, r.version, hcp.EventResourceUpdated, http.StatusOK)
		if errors.Is(err, errChanged) && try < 5 {
			continue
		}
		return a, err
	}
}

func (s *Server) upload(c *call, i hcp.Image, cl hcp.Cluster) (string, error) {
	size := int64(c.http.Request().Header.ContentLength())
	if size <= 0 {
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "no_length", "an upload needs a Content-Length")
	}
	stream := c.bodyStream()
	if stream == nil {
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "no_body", "the upload has no content")
	}
	// The read timeout of small calls does not fit a file.
	if deadline, has := c.ctx.Deadline(); has {
		if err := c.http.Context().Conn().SetReadDeadline(deadline); err != nil {
			return "", err
		}
	}
	checked := &checkedReader{r: stream, sum: sha256.New(), want: i.SHA256}
	artefact, err := s.Images.ImportImage(c.ctx, cl.ID, i.Name, i.SHA256, size, checked)
	if checked.err != nil { // whatever the importer made of it
		return "", checked.err
	}
	if err != nil {
		return "", err
	}
	if !checked.complete && checked.n > 0 {
		return "", hcp.Errorf(hcp.CodeInternal, "short_import", "the import ended before the file did")
	}
	return artefact, nil
}

// checkedReader ends with an error in place of io.EOF when what passed through is
// not the file that was promised: the importer must then drop it.
type checkedReader struct {
	r        io.Reader
	sum      hash.Hash
	want     string
	n        int64
	complete bool
	err      error
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.sum.Write(p[:n])
	switch {
	case err == io.EOF:
		if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(c.sum.Sum(nil))), []byte(c.want)) != 1 {
			c.err = hcp.Errorf(hcp.CodeInvalidRequest, "checksum_mismatch", "the file does not have the sha256 of the image")
			return 0, c.err // not even the last bytes: nothing is whole
		}
		c.complete = true
	case err != nil:
		c.err = hcp.Errorf(hcp.CodeInvalidRequest, "body_cut", "the upload ended early").WithCause(err)
		return n, c.err
	}
	return n, err
}
