package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Embedded is a NATS server inside this process, without a listener, and the
// Bus that speaks to it. A node alone uses exactly the code path of many.
type Embedded struct {
	*natsBus
	server *server.Server
}

// OpenEmbedded starts the server and connects to it; ready within a fraction of
// a second or an error.
func OpenEmbedded(log *slog.Logger) (*Embedded, error) {
	s, err := server.NewServer(&server.Options{ServerName: "hcp", DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, fmt.Errorf("make the embedded NATS server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("the embedded NATS server was not ready within 10 s")
	}
	bus, err := connect(log, "", nats.InProcessServer(s))
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	return &Embedded{natsBus: bus, server: s}, nil
}

// Close drains the client, then stops the server.
func (e *Embedded) Close() {
	e.natsBus.Close()
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

type natsBus struct {
	conn   *nats.Conn
	closed chan struct{}
}

var _ Bus = (*natsBus)(nil)

func connect(log *slog.Logger, url string, opts ...nats.Option) (*natsBus, error) {
	bus := &natsBus{closed: make(chan struct{})}
	opts = append(opts,
		nats.Name("hcpd"), nats.MaxReconnects(-1), nats.DrainTimeout(3*time.Second),
		nats.ClosedHandler(func(*nats.Conn) { close(bus.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("a NATS subscription met trouble", "subject", subject, "err", err)
		}))
	conn, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	bus.conn = conn
	return bus, nil
}

func (b *natsBus) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	msg, err := b.conn.RequestWithContext(ctx, subject, payload)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNoResponders
	case err != nil:
		return nil, err
	}
	return msg.Data, nil
}

func (b *natsBus) Serve(subject string, handle func([]byte, func([]byte))) (func(), error) {
	return b.subscribe(subject, func(m *nats.Msg) {
		handle(m.Data, func(answer []byte) {
			// A requester that is gone re-reads; there is nobody to tell.
			_ = m.Respond(answer)
		})
	})
}

func (b *natsBus) Publish(subject string, payload []byte) error {
	return b.conn.Publish(subject, payload)
}

func (b *natsBus) Subscribe(subject string, handle func([]byte)) (func(), error) {
	return b.subscribe(subject, func(m *nats.Msg) { handle(m.Data) })
}

func (b *natsBus) subscribe(subject string, handle nats.MsgHandler) (func(), error) {
	sub, err := b.conn.Subscribe(subject, handle)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Close answers what has arrived, then ends. Drain works in the background; the
// closed handler says when it is over.
func (b *natsBus) Close() {
	if err := b.conn.Drain(); err != nil {
		b.conn.Close()
	}
	<-b.closed
}
