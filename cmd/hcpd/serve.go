package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/actors/node"
	"github.com/lotuscloud/hcp/actors/provider"
	"github.com/lotuscloud/hcp/actors/vm"
	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/cluster"
	"github.com/lotuscloud/hcp/drivers"
	"github.com/lotuscloud/hcp/drivers/libvirt"
	"github.com/lotuscloud/hcp/drivers/sim"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/config"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/internal/observability"
	"github.com/lotuscloud/hcp/persistence"
	"github.com/lotuscloud/hcp/persistence/secrets"
	"github.com/lotuscloud/hcp/persistence/sqlite"
	"github.com/lotuscloud/hcp/transport"
)

// plane is one running node, in the order in which it was built.
type plane struct {
	cfg     config.Config
	log     *slog.Logger
	clock   clock.Clock
	ids     ident.Source
	store   persistence.Store
	sealer  persistence.Sealer
	bus     *transport.Embedded
	wakes   *transport.Wakes
	members *cluster.Solo
	node    *node.Node
	router  *cluster.Router
	issuer  *auth.Issuer
	metrics *observability.Metrics
	api     *api.Server

	apiURL, adminURL string
	closers          []func() error // what first run started
}

// stopWithin is how long a graceful stop may take.
const stopWithin = 15 * time.Second

// serve runs the node until ctx ends.
func serve(ctx context.Context, cfg config.Config, stdout, stderr io.Writer) (err error) {
	p := &plane{cfg: cfg, log: logger(cfg, stderr), clock: clock.Real(), ids: ident.Random(), metrics: observability.NewMetrics(version)}
	var undo []func()
	defer func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}()
	// The listeners come first: a taken port is said before anything is touched.
	ln, err := listen(cfg.Listen, "listen")
	if err != nil {
		return err
	}
	undo = append(undo, func() { _ = ln.Close() })
	adminLn, err := listen(cfg.AdminListen, "admin-listen")
	if err != nil {
		return err
	}
	undo = append(undo, func() { _ = adminLn.Close() })
	scheme := "http"
	p.adminURL = "http://" + adminLn.Addr().String()
	if cfg.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
		if err != nil {
			return fmt.Errorf("the certificate of the API cannot be used: %w", err)
		}
		ln, scheme = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), "https"
	}
	p.apiURL = scheme + "://" + ln.Addr().String()

	if err := p.openStore(ctx); err != nil {
		return err
	}
	undo = append(undo, func() { _ = p.store.Close() })
	if p.bus, err = transport.OpenEmbedded(p.log); err != nil {
		return err
	}
	undo = append(undo, p.bus.Close)
	if p.wakes, err = transport.NewWakes(p.bus); err != nil {
		return err
	}
	if p.members, err = cluster.JoinSolo(ctx, p.store, p.clock, cfg.Node, version); err != nil {
		return err
	}
	if err := p.startNode(ctx); err != nil {
		return err
	}
	if err := p.startAPI(ctx); err != nil {
		return err
	}
	p.metrics.Watch(p.store, func() (int64, int64, int64, int64) {
		vms, _ := p.node.Counts()
		return vms.Active, vms.Quarantined, vms.Activations, vms.Panics
	})
	admin := newAdmin(p)
	go admin.serve(adminLn)
	undo = append(undo, admin.close)
	served := make(chan error, 1)
	go func() { served <- p.api.Listen(ln) }()

	if err := p.firstRun(ctx, stdout); err != nil {
		return errors.Join(err, p.stop(admin))
	}
	admin.setReady(true)
	p.log.Info("hcpd serves", "url", p.apiURL, "admin", p.adminURL, "data", cfg.Data, "version", version)
	select {
	case <-ctx.Done():
		p.log.Info("hcpd stops")
	case err = <-served:
		err = fmt.Errorf("the API stopped: %w", err)
	}
	return errors.Join(err, p.stop(admin))
}

// stop ends intake first, then the actors, then what they stand on.
func (p *plane) stop(admin *admin) error {
	admin.setReady(false)
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	err := errors.Join(p.api.Shutdown(ctx), p.node.Stop(ctx), p.members.Leave(ctx))
	for _, end := range p.closers {
		err = errors.Join(err, end())
	}
	return err
}

func listen(address, setting string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return ln, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hcp.Errorf(hcp.CodeUnavailable, "port_taken", "%s %s is taken by another process", setting, address).
			WithHint(fmt.Sprintf("stop that process, or give another address with --%s (port 0 picks a free one)", setting))
	case errors.Is(err, syscall.EACCES):
		return nil, hcp.Errorf(hcp.CodeUnavailable, "port_forbidden", "hcpd may not listen on %s", address).
			WithHint("use a port above 1023, or grant CAP_NET_BIND_SERVICE")
	}
	return nil, hcp.Errorf(hcp.CodeUnavailable, "cannot_listen", "hcpd cannot listen on %s", address).WithCause(err)
}

// openStore opens the data folder, the key and the database.
func (p *plane) openStore(ctx context.Context) error {
	if err := os.MkdirAll(p.cfg.Data, 0o700); err != nil {
		return hcp.Errorf(hcp.CodeUnavailable, "unwritable", "the data folder %s cannot be made", p.cfg.Data).
			WithHint("name another folder with --data, or give this user the right to write there").WithCause(err)
	}
	database := filepath.Join(p.cfg.Data, "hcp.db")
	_, statErr := os.Stat(database)
	isNew := errors.Is(statErr, os.ErrNotExist)
	keyPath := p.cfg.KeyFile
	if keyPath == "" {
		keyPath = filepath.Join(p.cfg.Data, "hcp.key")
	}
	// A key is made only for a database that is not there yet: a fresh key would not
	// open what an existing one has sealed.
	key, err := secrets.OpenKeyFile(keyPath, isNew)
	if err != nil {
		return err
	}
	p.sealer = key
	if isNew {
		// The engine gives its other files the mode of this one.
		f, err := os.OpenFile(database, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return hcp.Errorf(hcp.CodeUnavailable, "unwritable", "the database %s cannot be made", database).
				WithHint("give this user the right to write in the data folder").WithCause(err)
		}
	}
	store, err := sqlite.Open(ctx, sqlite.Config{Path: database, Now: p.clock.Now, Log: p.log})
	if err != nil {
		return err
	}
	p.store = store
	return nil
}

func (p *plane) startNode(ctx context.Context) (err error) {
	jobs := vm.DefaultPolicy()
	jobs.StepTimeout, jobs.JobTimeout = p.cfg.JobStepTimeout, p.cfg.JobTimeout
	jobs.UndoTimeout, jobs.UndoTries, jobs.Queue = p.cfg.UndoTimeout, p.cfg.UndoTries, p.cfg.JobQueue
	clusters := provider.DefaultPolicy()
	clusters.CallTimeout, clusters.ProbeInterval = p.cfg.CallTimeout, p.cfg.ProbeInterval
	clusters.InventoryInterval, clusters.Concurrency = p.cfg.InventoryInterval, p.cfg.Concurrency
	p.node, err = node.Start(ctx, node.Deps{
		Store: p.store, Sealer: p.sealer, Bus: p.bus, Wakes: p.wakes, Members: p.members,
		Openers: drivers.Openers{"sim": sim.Open, "libvirt": libvirt.Open},
		Clock:   p.clock, IDs: p.ids, Jitter: jitter, Log: p.log, Metrics: p.metrics,
		Jobs: jobs, Cluster: clusters, Idle: p.cfg.ActorIdle, Scan: p.cfg.ActorScan,
	})
	if err != nil {
		return err
	}
	p.router = cluster.NewRouter(p.bus, p.members, p.clock, jitter, p.log)
	return nil
}

func (p *plane) startAPI(ctx context.Context) (err error) {
	if p.issuer, err = auth.NewIssuer(ctx, p.store, p.sealer, p.clock.Now, auth.Config{}); err != nil {
		return err
	}
	p.api, err = api.New(ctx, api.Deps{
		Store: p.store, Commander: p.router, Wakes: p.wakes, Images: images{p.node}, Issuer: p.issuer, Sealer: p.sealer,
		Clock: p.clock, IDs: p.ids, Log: p.log, Version: version,
		Metrics: func(o api.Observation) { p.metrics.Request(o.Route, o.Method, o.Status, o.Code, o.Duration) },
		Limits:  api.Limits{Rate: p.cfg.APIRate, Burst: p.cfg.APIBurst, Body: p.cfg.APIBodyLimit},
	})
	return err
}

// images gives the API's uploads to the cluster that wants them.
type images struct{ node *node.Node }

func (i images) ImportImage(ctx context.Context, id hcp.ClusterID, name, sha256 string, size int64, content io.Reader) (artefact string, err error) {
	err = i.node.ImportImage(ctx, id, func(d drivers.ImageImporter) (err error) {
		artefact, err = d.ImportImage(ctx, name, sha256, size, content)
		return err
	})
	return artefact, err
}

// jitter takes up to half of a pause away.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return d/2 + rand.N(d/2+1)
}
