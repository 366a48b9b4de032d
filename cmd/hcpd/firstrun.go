package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/persistence"
)

// tokenTTL is how long the tokens that hcpd itself hands out live.
const tokenTTL = 30 * 24 * time.Hour

// adminSubject is who the admin token speaks for.
const adminSubject = "admin@local"

// readyFile is what scripts and tests read once hcpd serves.
type readyFile struct {
	URL          string `json:"url"`
	AdminURL     string `json:"admin_url"`
	Token        string `json:"token"`
	OpsToken     string `json:"ops_token"`
	Project      string `json:"project"`
	OtherToken   string `json:"other_token"`
	OtherProject string `json:"other_project"`
	SimURL       string `json:"sim_url"`
}

// firstRun makes the admin's token, with --dev the world to try, and says where
// hcpd is.
func (p *plane) firstRun(ctx context.Context, stdout io.Writer) error {
	for _, role := range []string{auth.CloudOperator, auth.InfraAdmin, auth.SecurityAuditor} {
		if err := p.bind(ctx, hcp.RoleBinding{Subject: adminSubject, Role: role, Scope: hcp.ScopeOps}); err != nil {
			return err
		}
	}
	ops, err := p.issuer.Issue(adminSubject, hcp.ScopeOps, tokenTTL)
	if err != nil {
		return err
	}
	tokenPath := filepath.Join(p.cfg.Data, "admin.token")
	if err := writeFile(tokenPath, []byte(ops+"\n")); err != nil {
		return fmt.Errorf("the admin token cannot be written: %w", err)
	}
	ready := readyFile{URL: p.apiURL, AdminURL: p.adminURL, OpsToken: ops}
	if p.cfg.Dev {
		if err := p.devWorld(ctx, &ready); err != nil {
			return err
		}
		greetDev(stdout, ready)
	} else {
		fmt.Fprintf(stdout, "HCP serves at %s\nAn operator's token is in %s:\n  export HCP_SERVER=%s HCP_TOKEN_FILE=%s\n  hcpctl cluster list\n",
			ready.URL, tokenPath, ready.URL, tokenPath)
	}
	if p.cfg.ReadyFile == "" {
		return nil
	}
	body, err := json.MarshalIndent(ready, "", "  ")
	if err == nil {
		err = writeFile(p.cfg.ReadyFile, append(body, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the ready file cannot be written: %w", err)
	}
	return nil
}

func greetDev(w io.Writer, r readyFile) {
	fmt.Fprintf(w, `HCP is at %s (development: anybody on this machine who sees these tokens may use them)

  tenant token, project %s:
    %s
  operator token:
    %s

Try:
  export HCP_SERVER=%s HCP_PROJECT=%s HCP_TOKEN=%s
  hcpctl vm create web-1 --image tiny --flavor tiny --zone local
  hcpctl vm list

For hcpctl sim:
  export HCP_SIM=%s
`, r.URL, r.Project, r.Token, r.OpsToken, r.URL, r.Project, r.Token, r.SimURL)
}

// put inserts a catalogue record unless one of that name is there; it returns the
// record that is.
func (p *plane) put(ctx context.Context, r persistence.Record) (persistence.Record, error) {
	err := p.store.Commit(ctx, persistence.Commit{Records: []persistence.RecordChange{{Record: r}}})
	if refusal, ok := persistence.RefusalOf(err); ok && refusal.Kind == persistence.RefusedName {
		return p.store.GetRecord(ctx, r.Kind, r.Name)
	}
	return r, err
}

func (p *plane) bind(ctx context.Context, b hcp.RoleBinding) error {
	b.ID = p.ids.New(hcp.KindBinding)
	r, err := auth.BindingRecord(b)
	if err != nil {
		return err
	}
	err = p.store.Commit(ctx, persistence.Commit{Records: []persistence.RecordChange{{Record: r}}})
	if refusal, ok := persistence.RefusalOf(err); ok && refusal.Kind == persistence.RefusedName {
		return nil // it is bound already
	}
	return err
}

// record encodes a catalogue row.
func record[T any](kind persistence.RecordKind, id, name, parent string, v T) (persistence.Record, error) {
	body, err := json.Marshal(v)
	return persistence.Record{Kind: kind, ID: id, Name: name, Parent: parent, Body: body}, err
}

// patience is how long a hypervisor may take to be looked at for the first time:
// a libvirt that has just started asks each QEMU what it can do.
const patience = time.Minute

// answerWithin is how long a hypervisor that refuses at once is asked again.
const answerWithin = 10 * time.Second

// do sends a command as hcpd itself.
func (p *plane) do(ctx context.Context, c hcp.Command) (hcp.Answer, error) {
	c.ID = hcp.CommandID(p.ids.New(hcp.KindCommand))
	c.Call = hcp.Call{RequestID: hcp.RequestID(p.ids.New(hcp.KindRequest)), Actor: "hcp", Scope: hcp.ScopeOps,
		Action: string(c.Verb), Method: http.MethodPost, Path: "first run"}
	c.Deadline = p.clock.Now().Add(patience)
	a, err := p.router.Do(ctx, c)
	if err == nil && a.Fault != nil {
		err = a.Fault.Error()
	}
	return a, err
}

// ensureCluster registers a cluster unless it is there with the same endpoint, and
// waits until it was probed.
func (p *plane) ensureCluster(ctx context.Context, c hcp.Cluster) (hcp.ClusterID, error) {
	st, err := p.store.LoadCluster(ctx, c.Name)
	switch {
	case err == nil:
		c.ID = st.Cluster.ID
	case hcp.IsCode(err, hcp.CodeNotFound):
		c.ID = hcp.ClusterID(p.ids.New(hcp.KindCluster))
	default:
		return "", err
	}
	if err != nil || st.Cluster.Endpoint != c.Endpoint {
		if _, err := p.do(ctx, hcp.Command{Verb: hcp.VerbClusterPut, Cluster: c.ID, Put: &hcp.PutCluster{Cluster: c}}); err != nil {
			return "", err
		}
	}
	return c.ID, p.awaitCluster(ctx, c)
}

// awaitCluster waits until the cluster answers now, whatever an earlier run has
// stored of it, and a sweep has said how much may be placed there.
func (p *plane) awaitCluster(ctx context.Context, c hcp.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := p.clock.Now()
	ticks, stop := p.clock.NewTicker(300 * time.Millisecond)
	defer stop()
	for {
		answer, err := p.do(ctx, hcp.Command{Verb: hcp.VerbClusterProbe, Cluster: c.ID})
		if err != nil {
			return err
		}
		var view hcp.ClusterView
		if err := json.Unmarshal(answer.Body, &view); err != nil {
			return err
		}
		room, err := p.store.ClusterCapacity(ctx)
		if err != nil {
			return err
		}
		isUp := view.Reachability != nil && view.Reachability.Reachable
		if _, hasRoom := room[c.ID]; isUp && hasRoom {
			return nil
		}
		if !isUp && p.clock.Now().Sub(began) > answerWithin {
			return hcp.Errorf(hcp.CodeProviderUnavailable, "unreachable", "the cluster %s at %s does not answer", c.Name, c.Endpoint).
				WithHint("start it, or leave the flag that registers it away")
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return hcp.Errorf(hcp.CodeProviderTimeout, "no_inventory", "the cluster %s at %s answers, but its inventory does not come", c.Name, c.Endpoint)
		}
	}
}

// startSim runs the simulated hypervisor of --dev in this process; its world is
// written through to the data folder.
func (p *plane) startSim() (url string, err error) {
	server, err := sim.NewServer(sim.ServerConfig{Data: filepath.Join(p.cfg.Data, "sim"), Log: p.log, Clock: clock.Real()})
	if err != nil {
		return "", err
	}
	ln, err := listen("127.0.0.1:0", "the simulated hypervisor")
	if err != nil {
		return "", errors.Join(err, server.Close())
	}
	h := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.Serve(ln) }()
	p.closers = append(p.closers, server.Close, h.Close)
	return "http://" + ln.Addr().String(), nil
}
