package transport

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lotuscloud/hcp"
)

func open(t *testing.T) *Embedded {
	t.Helper()
	e, err := OpenEmbedded(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRequestAndReplyThenNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := open(t)
	defer e.Close()
	stop, err := e.Serve("s", func(p []byte, reply func([]byte)) { go reply(append(p, '!')) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if got, err := e.Request(ctx, "s", []byte("hi")); err != nil || string(got) != "hi!" {
		t.Fatalf("%q %v", got, err)
	}
	stop()
	if _, err := e.Request(ctx, "nobody", nil); !errors.Is(err, ErrNoResponders) {
		t.Errorf("nobody serves it: %v", err)
	}
}

func TestAWakeReachesWhoWaitsForIt(t *testing.T) {
	e := open(t)
	defer e.Close()
	w, err := NewWakes(e)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mine, stopMine := w.WaitJob("job_1")
	other, stopOther := w.WaitJob("job_2")
	events, stopEvents := w.WaitEvents()
	defer stopOther()
	defer stopEvents()
	w.Send(Wake{Jobs: []hcp.JobID{"job_1"}, Events: true})
	for _, c := range []<-chan struct{}{mine, events} {
		select {
		case <-c:
		case <-time.After(5 * time.Second):
			t.Fatal("no wake within 5 s")
		}
	}
	select {
	case <-other:
		t.Error("a wake for another job")
	default:
	}
	stopMine()
	if len(w.jobs) != 1 {
		t.Errorf("%d jobs are waited for, want 1", len(w.jobs))
	}
}
