package simd

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
	"github.com/lotuscloud/hcp/drivers/sim/world"
)

// api answers one call of the hypervisor's API.
func (s *Server) api(rw http.ResponseWriter, r *http.Request, op simapi.Op, body []byte) {
	if !op.Known() {
		fail(rw, simapi.Errorf(simapi.CodeNoPath, "there is no operation %q", op))
		return
	}
	var out world.Outcome
	var refused *simapi.Error
	token := r.Header.Get(simapi.TokenHeader)
	var hung chan struct{}
	var machines simapi.TaskAnswer
	ok := s.locked(func(w *world.World) {
		switch down := w.Down(); {
		case down == "cut":
			out.Cut = true
		case down != "":
			refused = simapi.Errorf(simapi.CodeUnavailable, "the cluster is down")
		case op != simapi.OpLogin && !s.sessions[token]:
			refused = simapi.Errorf(simapi.CodeUnauthorized, "there is no such session; log in")
		case op.Mutating():
			out = w.Do(op, body)
			machines.Task = out.Task
		default:
			out = w.Gate(op)
		}
		if out.Hang != "" {
			hung = make(chan struct{})
			s.waiting[out.Hang] = hung
		}
	})
	switch {
	case !ok || out.Cut:
		cut()
	case refused != nil:
		fail(rw, refused)
	case out.Hang != "":
		s.hang(rw, r, op, out.Hang, hung, body, token)
	case out.Err != nil:
		fail(rw, out.Err)
	case op.Mutating():
		answer(rw, http.StatusOK, machines)
	case out.DelayMS > 0 && !s.wait(r, time.Duration(out.DelayMS)*time.Millisecond):
		cut()
	default:
		s.read(rw, op, body, token)
	}
}

// hang holds a call until its release, the end of the server, or of the caller's patience.
func (s *Server) hang(rw http.ResponseWriter, r *http.Request, op simapi.Op, task string, released chan struct{}, body []byte, token string) {
	select {
	case <-released:
	case <-r.Context().Done():
		s.mu.Lock()
		delete(s.waiting, task)
		s.mu.Unlock()
		cut()
	case <-s.closed:
		cut()
	}
	if !op.Mutating() {
		s.read(rw, op, body, token)
		return
	}
	var out world.Outcome
	switch ok := s.locked(func(w *world.World) { out = w.Released(task) }); {
	case !ok || out.Cut:
		cut()
	case out.Err != nil:
		fail(rw, out.Err)
	default:
		answer(rw, http.StatusOK, simapi.TaskAnswer{Task: out.Task})
	}
}

// wait passes the time of a slow read; false when the caller or the server is gone before.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	done := make(chan struct{})
	stop := s.clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

// read answers an operation that does not change the world.
func (s *Server) read(rw http.ResponseWriter, op simapi.Op, body []byte, token string) {
	var a any
	var err *simapi.Error
	ok := s.locked(func(w *world.World) {
		switch op {
		case simapi.OpGet:
			a, err = with(body, w.Get)
		case simapi.OpList:
			a, err = with(body, w.List)
		case simapi.OpFind:
			a, err = with(body, w.Find)
		case simapi.OpTask:
			a, err = with(body, func(req simapi.TaskRequest) (simapi.TaskAnswer, *simapi.Error) {
				t, err := w.Task(req)
				return simapi.TaskAnswer{Task: t}, err
			})
		case simapi.OpCluster:
			a, err = with(body, func(struct{}) (simapi.ClusterAnswer, *simapi.Error) { return w.Cluster(), nil })
		case simapi.OpLogin:
			a, err = with(body, func(req simapi.LoginRequest) (simapi.LoginAnswer, *simapi.Error) { return s.login(w, req) })
		case simapi.OpLogout:
			a, err = with(body, func(struct{}) (simapi.OK, *simapi.Error) {
				delete(s.sessions, token)
				return simapi.OK{}, nil
			})
		}
	})
	switch {
	case !ok:
		cut()
	case err != nil:
		fail(rw, err)
	default:
		answer(rw, http.StatusOK, a)
	}
}

// login opens a session. Sessions live until logout, expire_sessions or a restart.
func (s *Server) login(w *world.World, req simapi.LoginRequest) (simapi.LoginAnswer, *simapi.Error) {
	s.logins.Add(1)
	if !w.Password(req.Password) {
		return simapi.LoginAnswer{}, simapi.Errorf(simapi.CodeUnauthorized, "user or password is wrong")
	}
	token := rand.Text()
	s.sessions[token] = true
	return simapi.LoginAnswer{Token: token}, nil
}

// with decodes the body for f.
func with[Req, Ans any](body []byte, f func(Req) (Ans, *simapi.Error)) (any, *simapi.Error) {
	var req Req
	if err := world.Strict(body, &req); err != nil {
		return nil, err
	}
	return f(req)
}
