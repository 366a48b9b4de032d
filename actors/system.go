package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// Behaviour is what an actor does with one message. It is never called twice at
// once and must not block.
type Behaviour interface {
	Receive(msg any)
	// Crashed is called instead of a second Receive when Receive panicked. The
	// behaviour is broken and will get no further message: it answers who waits. The
	// next message for the same id finds a fresh activation.
	Crashed(msg any, why error)
}

// System owns the runtime. One per process.
type System struct {
	runtime *actor.ActorSystem
	log     *slog.Logger
}

// NewSystem starts the runtime.
func NewSystem(log *slog.Logger) *System {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(warnings{log.Handler()}).With("part", "actors")
	})
	return &System{runtime: actor.NewActorSystem(quiet), log: log}
}

// warnings passes what the runtime says from warnings on: that it started, and
// that a message came for an actor that had left, is not news.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// Shutdown ends the runtime; actors have been retired before.
func (s *System) Shutdown() { s.runtime.Shutdown() }

// ref is one running actor.
type ref struct {
	system *System
	pid    *actor.PID
	// done is closed after the last message was handled.
	done chan struct{}
}

func (r *ref) tell(msg any) { r.system.runtime.Root.Send(r.pid, msg) }

// retire lets the actor finish its queue, then ends it.
func (r *ref) retire() { r.system.runtime.Root.Poison(r.pid) }

// spawn starts an actor. crashed is called once when the behaviour panicked.
func (s *System) spawn(b Behaviour, crashed func()) *ref {
	r := &ref{system: s, done: make(chan struct{})}
	shell := &shell{behaviour: b, log: s.log, crashed: crashed, done: r.done}
	r.pid = s.runtime.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return shell }))
	return r
}

// shell stands between the runtime and a behaviour and catches its panics: the
// runtime would drop the message without a word and restart on stale state.
type shell struct {
	behaviour Behaviour
	log       *slog.Logger
	crashed   func()
	done      chan struct{}
	broken    error
}

func (s *shell) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Restarting:
	case *actor.Stopped:
		close(s.done)
	case *actor.PoisonPill:
	default:
		s.handle(msg)
	}
}

func (s *shell) handle(msg any) {
	if s.broken != nil {
		s.behaviour.Crashed(msg, s.broken)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.broken = fmt.Errorf("actor panicked: %v", p)
			s.log.Error("an actor panicked", "message", fmt.Sprintf("%T", msg), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.behaviour.Crashed(msg, s.broken)
			s.crashed()
		}
	}()
	s.behaviour.Receive(msg)
}
