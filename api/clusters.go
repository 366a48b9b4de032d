package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

// theCluster resolves {cluster} on a fresh read.
func (c *call) theCluster() (hcp.Cluster, error) { return c.clusterNamed(c.params["cluster"]) }

func (c *call) clusterNamed(value string) (hcp.Cluster, error) {
	ref, err := c.ref(value, "cluster")
	if err != nil {
		return hcp.Cluster{}, err
	}
	st, err := c.s.Store.LoadCluster(c.ctx, ref)
	switch {
	case hcp.IsCode(err, hcp.CodeNotFound), err == nil && st.Cluster.Deleted:
		return hcp.Cluster{}, hcp.NotFound("cluster")
	case err != nil:
		return hcp.Cluster{}, err
	}
	c.target = hcp.LRNOf("cluster", string(st.Cluster.ID))
	return st.Cluster, nil
}

func (s *Server) listClusters(c *call) (answer, error) {
	states, err := s.Store.ListClusters(c.ctx)
	if err != nil {
		return answer{}, err
	}
	p, err := s.infra.get(c.ctx, true)
	if err != nil {
		return answer{}, err
	}
	clusters := make([]hcp.Cluster, 0, len(states))
	for _, st := range states {
		clusters = append(clusters, st.Cluster)
	}
	return all(clusters, p.view)
}

func (s *Server) getCluster(c *call) (answer, error) {
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	p, err := s.infra.get(c.ctx, true)
	if err != nil {
		return answer{}, err
	}
	return ok(p.view(cl))
}

// clusterCommand sends a command to the cluster's owner and answers with the
// view as it is afterwards. The actor's own bytes are kept for replays.
func (s *Server) clusterCommand(c *call, cmd hcp.Command) (answer, error) {
	a, err := s.do(c, cmd)
	s.infra.forget()
	if err != nil {
		return answer{}, err
	}
	out := c.accepted(a)
	if out.status == 0 || out.status == http.StatusAccepted {
		out.status = c.route.Status
	}
	if c.route.Answer == nil {
		return answer{status: http.StatusNoContent, replayed: a.Replayed}, nil
	}
	if !a.Replayed {
		out.status = c.route.Status
	}
	if len(out.raw) > 0 {
		return out, nil
	}
	st, err := s.Store.LoadCluster(c.ctx, string(cmd.Cluster))
	if err != nil {
		return answer{}, err
	}
	p, err := s.infra.get(c.ctx, true)
	if err != nil {
		return answer{}, err
	}
	out.body = p.view(st.Cluster)
	return out, nil
}

func (s *Server) registerCluster(c *call) (answer, error) {
	var in v1.RegisterCluster
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	name, err := cleanName(in.Name)
	if err != nil {
		return answer{}, err
	}
	if err := checkEndpoint(in.Endpoint); err != nil {
		return answer{}, err
	}
	now := c.now()
	cl := hcp.Cluster{ID: id[hcp.ClusterID](s, hcp.KindCluster), Name: name, Driver: in.Driver, Endpoint: in.Endpoint,
		Options: in.Options, CreatedAt: now, UpdatedAt: now}
	c.target = hcp.LRNOf("cluster", string(cl.ID))
	put := hcp.PutCluster{Cluster: cl}
	if put.Credentials, err = s.sealCredentials(cl.ID, in.Credentials, false); err != nil {
		return answer{}, err
	}
	return s.clusterCommand(c, hcp.Command{Verb: hcp.VerbClusterPut, Cluster: cl.ID, Put: &put})
}

func (s *Server) updateCluster(c *call) (answer, error) {
	var in v1.UpdateCluster
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	if in.Name != nil {
		if cl.Name, err = cleanName(*in.Name); err != nil {
			return answer{}, err
		}
	}
	if in.Endpoint != nil {
		if err := checkEndpoint(*in.Endpoint); err != nil {
			return answer{}, err
		}
		cl.Endpoint = *in.Endpoint
	}
	if in.Options != nil {
		cl.Options = *in.Options
	}
	cl.UpdatedAt = c.now()
	return s.clusterCommand(c, hcp.Command{Verb: hcp.VerbClusterPut, Cluster: cl.ID, Put: &hcp.PutCluster{Cluster: cl}})
}

// checkEndpoint refuses credentials in an address: it is shown and logged.
func checkEndpoint(endpoint string) error {
	if len(endpoint) > 4096 {
		return badField("/endpoint", "too_long", "the endpoint is too long")
	}
	for part := range strings.SplitSeq(endpoint, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil {
			continue // the driver says what it takes
		}
		if _, has := u.User.Password(); u.User != nil && has {
			return badField("/endpoint", "credentials_in_endpoint", "the endpoint must not contain a password; use credentials")
		}
	}
	return nil
}

// sealCredentials takes a JSON object.
func (s *Server) sealCredentials(cluster hcp.ClusterID, raw json.RawMessage, required bool) (hcp.Sealed, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		if required {
			return nil, badField("/credentials", "required", "the field is required")
		}
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, badField("/credentials", "wrong_type", "credentials are an object")
	}
	sealed, err := s.Sealer.Seal(raw, hcp.CredentialContext(cluster))
	if err != nil {
		return nil, hcp.Errorf(hcp.CodeInternal, "seal", "the credentials cannot be sealed").WithCause(err)
	}
	return sealed, nil
}

func (s *Server) setCredentials(c *call) (answer, error) {
	var in v1.SetCredentials
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	sealed, err := s.sealCredentials(cl.ID, in.Credentials, true)
	if err != nil {
		return answer{}, err
	}
	return s.clusterCommand(c, hcp.Command{Verb: hcp.VerbClusterCredentials, Cluster: cl.ID, Put: &hcp.PutCluster{Cluster: cl, Credentials: sealed}})
}

func (s *Server) setMaintenance(c *call) (answer, error) {
	var in v1.SetMaintenance
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	return s.clusterCommand(c, hcp.Command{Verb: hcp.VerbClusterMaintenance, Cluster: cl.ID, Enable: in.Enabled})
}

func (s *Server) probeCluster(c *call) (answer, error) {
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	return s.clusterCommand(c, hcp.Command{Verb: hcp.VerbClusterProbe, Cluster: cl.ID})
}

func (s *Server) deleteCluster(c *call) (answer, error) {
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	return s.clusterCommand(c, hcp.Command{Verb: hcp.VerbClusterDelete, Cluster: cl.ID})
}

func (s *Server) listOrphans(c *call) (answer, error) {
	cl, err := c.theCluster()
	if err != nil {
		return answer{}, err
	}
	a, err := s.do(c, hcp.Command{Verb: hcp.VerbClusterOrphans, Cluster: cl.ID})
	if err != nil {
		return answer{}, err
	}
	var list hcp.OrphanList
	if err := unmarshalAnswer(a, &list); err != nil {
		return answer{}, err
	}
	if list.Items == nil {
		list.Items = []hcp.Orphan{}
	}
	if list.Unreached == nil {
		list.Unreached = []string{}
	}
	return ok(list)
}
