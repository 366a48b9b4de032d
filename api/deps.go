package api

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/auth"
	"github.com/lotuscloud/hcp/internal/clock"
	"github.com/lotuscloud/hcp/internal/ident"
	"github.com/lotuscloud/hcp/persistence"
)

// Deps is all that the API stands on. Every field must be set; of Limits, zero
// fields have defaults.
type Deps struct {
	Store     persistence.Store
	Commander Commander
	Wakes     Wakes
	Images    Images
	Issuer    *auth.Issuer
	Sealer    persistence.Sealer // of user data and provider credentials
	Clock     clock.Clock
	IDs       ident.Source
	Log       *slog.Logger
	Metrics   func(Observation)
	Version   string // of the program
	Limits    Limits
}

// Limits bound what one caller can take.
type Limits struct {
	Body           int           // bytes of a JSON body; 1 MiB
	Command        time.Duration // how long a command may take to be accepted; 10 s
	Upload         time.Duration // how long an image upload may take; 2 h
	Rate           float64       // calls a second and principal; 5000
	Burst          int           // 10000
	Streams        int           // event streams of one node; 1000
	StreamWrite    time.Duration // how long a stream's reader may stall; 15 s
	Heartbeat      time.Duration // between comments on a quiet stream; 10 s
	Reread         time.Duration // of whoever waits, when no hint comes; 2 s
	IdempotencyTTL time.Duration // of keys whose job is final; 24 h
}

func (l Limits) withDefaults() Limits {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&l.Command, 10*time.Second)
	or(&l.Upload, 2*time.Hour)
	or(&l.StreamWrite, 15*time.Second)
	or(&l.Heartbeat, 10*time.Second)
	or(&l.Reread, 2*time.Second)
	or(&l.IdempotencyTTL, 24*time.Hour)
	if l.Body == 0 {
		l.Body = 1 << 20
	}
	if l.Rate == 0 {
		l.Rate = 5000
	}
	if l.Burst == 0 {
		l.Burst = 10000
	}
	if l.Streams == 0 {
		l.Streams = 1000
	}
	return l
}

func (d Deps) check() error {
	var errs []error
	need := func(has bool, field string) {
		if !has {
			errs = append(errs, fmt.Errorf("api: Deps.%s is not set", field))
		}
	}
	need(d.Store != nil, "Store")
	need(d.Commander != nil, "Commander")
	need(d.Wakes != nil, "Wakes")
	need(d.Images != nil, "Images")
	need(d.Issuer != nil, "Issuer")
	need(d.Sealer != nil, "Sealer")
	need(d.Clock != nil, "Clock")
	need(d.IDs != nil, "IDs")
	need(d.Log != nil, "Log")
	need(d.Metrics != nil, "Metrics")
	need(d.Version != "", "Version")
	return errors.Join(errs...)
}

// id types a fresh id.
func id[T ~string](s *Server, kind hcp.IDKind) T { return T(s.IDs.New(kind)) }
