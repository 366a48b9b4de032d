package simd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServeConfig is a Server that listens by itself.
type ServeConfig struct {
	Config
	Listen string // "127.0.0.1:0" picks a free port
	// Ready is called once with the URL, when calls are answered.
	Ready func(url string)
}

// Serve runs a simulated hypervisor until ctx ends. The URL of Ready is the
// endpoint to register, and the base of /control.
func Serve(ctx context.Context, cfg ServeConfig) error {
	s, err := NewServer(cfg.Config)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("the sim cannot listen on %q: %w", cfg.Listen, err)
	}
	hs := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	if cfg.Ready != nil {
		cfg.Ready("http://" + l.Addr().String())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("the sim stopped listening: %w", err)
	case <-ctx.Done():
	}
	// Close of the server first, so that hung calls let go of their connections.
	err = s.Close()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if hs.Shutdown(stop) != nil {
		_ = hs.Close()
	}
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
