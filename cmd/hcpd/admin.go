package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// admin answers health and metrics on its own listener.
type admin struct {
	plane  *plane
	server *http.Server
	ready  atomic.Bool
}

func newAdmin(p *plane) *admin {
	a := &admin{plane: p}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics.Registry, promhttp.HandlerOpts{}))
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	return a
}

func (a *admin) serve(ln net.Listener) { _ = a.server.Serve(ln) }

func (a *admin) close() { _ = a.server.Close() }

func (a *admin) setReady(ready bool) { a.ready.Store(ready) }

// readyz is about HCP itself: a dead provider degrades, it never makes HCP unready.
func (a *admin) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	checks := []struct {
		name string
		err  error
	}{{"serving", nil}, {"store", nil}}
	if !a.ready.Load() {
		checks[0].err = fmt.Errorf("hcpd is starting or stopping")
	}
	_, checks[1].err = a.plane.store.LastPosition(ctx)
	status := http.StatusOK
	for _, c := range checks {
		if c.err != nil {
			status = http.StatusServiceUnavailable
		}
	}
	w.WriteHeader(status)
	for _, c := range checks {
		if c.err != nil {
			fmt.Fprintf(w, "%s: %v\n", c.name, c.err)
			continue
		}
		fmt.Fprintf(w, "%s: ok\n", c.name)
	}
	if reach, err := a.plane.store.Reachability(ctx); err == nil {
		for id, c := range reach {
			if !c.Reachable {
				fmt.Fprintf(w, "degraded: cluster %s is %s\n", id, c.Reason)
			}
		}
	}
}
