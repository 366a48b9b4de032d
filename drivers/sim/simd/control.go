package simd

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/world"
)

// controls is every fault control by name. They work while the API is down.
var controls = map[string]func(*Server, *world.World, []byte) (any, *simapi.Error){
	"delay": set(func(r simapi.DelayFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		if r.MS < 0 {
			return "", nil, simapi.Errorf(simapi.CodeBadRequest, "ms must not be negative")
		}
		return r.Op, func(s *simapi.OpState) { s.DelayMS = r.MS }, nil
	}),
	"fail": set(func(r simapi.FailFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		if r.Code == "" {
			return "", nil, simapi.Errorf(simapi.CodeBadRequest, "code is missing: an HTTP status or a name; ok ends the fault")
		}
		if r.InTask && !r.Op.Mutating() && r.Op != "*" {
			return "", nil, simapi.Errorf(simapi.CodeBadRequest, "%s makes no task", r.Op)
		}
		r.N = hits(r.N)
		return r.Op, func(s *simapi.OpState) {
			if s.Fail = &r; r.Code == "ok" {
				s.Fail = nil
			}
		}, nil
	}),
	"commit_then_drop": set(func(r simapi.OpFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		return r.Op, func(s *simapi.OpState) { s.DropAfter = hits(r.N) }, nil
	}),
	"drop": set(func(r simapi.OpFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		return r.Op, func(s *simapi.OpState) { s.DropBefore = hits(r.N) }, nil
	}),
	"commit_noop": set(func(r simapi.OpFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		if !r.Op.Mutating() {
			return "", nil, simapi.Errorf(simapi.CodeBadRequest, "op must be one that changes something")
		}
		return r.Op, func(s *simapi.OpState) { s.Noop = hits(r.N) }, nil
	}),
	"hang": set(func(r simapi.HangFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		if r.N < 0 || r.Answer && !r.Op.Mutating() {
			return "", nil, simapi.Errorf(simapi.CodeBadRequest, "n must not be negative, and answer needs an op that makes a task")
		}
		return r.Op, func(s *simapi.OpState) { s.Hang = &r }, nil
	}),
	"lose_task": set(func(r simapi.LoseFault) (simapi.Op, func(*simapi.OpState), *simapi.Error) {
		if r.When == "" {
			r.When = "after"
		}
		if !r.Op.Mutating() || r.When != "after" && r.When != "before" {
			return "", nil, simapi.Errorf(simapi.CodeBadRequest, "op must be one that makes a task, when must be before or after")
		}
		r.N = hits(r.N)
		return r.Op, func(s *simapi.OpState) { s.Lose = &r }, nil
	}),
	"release": do(func(s *Server, w *world.World, r simapi.OpRequest) (simapi.ReleaseAnswer, *simapi.Error) {
		ids := w.Release(r.Op)
		for _, id := range ids {
			if c := s.waiting[id]; c != nil {
				close(c)
				delete(s.waiting, id)
			}
		}
		return simapi.ReleaseAnswer{Released: len(ids)}, nil
	}),
	"clear": do(func(_ *Server, w *world.World, _ simapi.OK) (simapi.OK, *simapi.Error) {
		w.Clear()
		return simapi.OK{}, nil
	}),
	"down": do(func(_ *Server, w *world.World, r simapi.DownRequest) (simapi.OK, *simapi.Error) {
		if r.Mode == "" {
			r.Mode = "refuse"
		}
		if r.Mode != "refuse" && r.Mode != "cut" {
			return simapi.OK{}, simapi.Errorf(simapi.CodeBadRequest, "mode must be refuse or cut")
		}
		w.SetDown(r.Mode)
		return simapi.OK{}, nil
	}),
	"up": do(func(_ *Server, w *world.World, _ simapi.OK) (simapi.OK, *simapi.Error) {
		w.SetDown("")
		return simapi.OK{}, nil
	}),
	"host": do(func(_ *Server, w *world.World, r simapi.HostRequest) (simapi.OK, *simapi.Error) {
		return simapi.OK{}, w.SetHost(r)
	}),
	"boot": do(func(_ *Server, w *world.World, r simapi.BootRequest) (simapi.OK, *simapi.Error) {
		if r.MS < 0 {
			return simapi.OK{}, simapi.Errorf(simapi.CodeBadRequest, "ms must not be negative")
		}
		w.SetBoot(r.MS)
		return simapi.OK{}, nil
	}),
	"password": do(func(_ *Server, w *world.World, r simapi.PasswordRequest) (simapi.OK, *simapi.Error) {
		w.SetPassword(r.Password)
		return simapi.OK{}, nil
	}),
	"expire_sessions": do(func(s *Server, _ *world.World, _ simapi.OK) (simapi.OK, *simapi.Error) {
		clear(s.sessions)
		return simapi.OK{}, nil
	}),
	"oob": do(func(_ *Server, w *world.World, r simapi.OOBRequest) (simapi.OOBAnswer, *simapi.Error) {
		return w.OOB(r)
	}),
	"omit": do(func(_ *Server, w *world.World, r simapi.OmitRequest) (simapi.OK, *simapi.Error) {
		return simapi.OK{}, w.Omit(r)
	}),
	"list": do(func(_ *Server, w *world.World, _ simapi.OK) (simapi.ListAnswer, *simapi.Error) { return w.All(), nil }),
	"count": do(func(_ *Server, w *world.World, r simapi.OpRequest) (simapi.CountAnswer, *simapi.Error) {
		a := w.Counts()
		if r.Op == "" {
			return a, nil
		}
		if !r.Op.Known() {
			return a, simapi.Errorf(simapi.CodeBadRequest, "there is no operation %q", r.Op)
		}
		a.Ops = map[simapi.Op]simapi.Count{r.Op: a.Ops[r.Op]}
		return a, nil
	}),
	"reset_counts": do(func(s *Server, w *world.World, _ simapi.OK) (simapi.OK, *simapi.Error) {
		s.logins.Store(0)
		w.ResetCounts()
		return simapi.OK{}, nil
	}),
	"sessions": do(func(s *Server, _ *world.World, _ simapi.OK) (simapi.SessionsAnswer, *simapi.Error) {
		return simapi.SessionsAnswer{Sessions: len(s.sessions), Logins: s.logins.Load()}, nil
	}),
	"status": do(func(_ *Server, w *world.World, _ simapi.OK) (simapi.StatusAnswer, *simapi.Error) {
		return w.Status(), nil
	}),
}

// hits reads an absent count as one.
func hits(n int) int {
	if n == 0 {
		return 1
	}
	return max(n, simapi.Forever)
}

func do[Req, Ans any](f func(*Server, *world.World, Req) (Ans, *simapi.Error)) func(*Server, *world.World, []byte) (any, *simapi.Error) {
	return func(s *Server, w *world.World, body []byte) (any, *simapi.Error) {
		return with(body, func(r Req) (Ans, *simapi.Error) { return f(s, w, r) })
	}
}

// set is a control that changes the faults of an operation.
func set[Req any](f func(Req) (simapi.Op, func(*simapi.OpState), *simapi.Error)) func(*Server, *world.World, []byte) (any, *simapi.Error) {
	return do(func(_ *Server, w *world.World, r Req) (simapi.OK, *simapi.Error) {
		op, change, err := f(r)
		if err == nil {
			err = w.SetFault(op, change)
		}
		return simapi.OK{}, err
	})
}

// Controls lists the names of all controls.
func Controls() []string {
	names := make([]string, 0, len(controls))
	for name := range controls {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *Server) control(rw http.ResponseWriter, name string, body []byte) {
	f, ok := controls[name]
	if !ok {
		fail(rw, simapi.Errorf(simapi.CodeBadRequest, "there is no control %q; there are %s", name, strings.Join(Controls(), ", ")))
		return
	}
	var a any
	var err *simapi.Error
	switch ok := s.locked(func(w *world.World) { a, err = f(s, w, body) }); {
	case !ok:
		cut()
	case err != nil:
		fail(rw, err)
	default:
		answer(rw, http.StatusOK, a)
	}
}
