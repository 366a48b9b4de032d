package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// caller is one client with its own connection.
type caller struct {
	w    *world
	http *http.Client
}

func newCaller(w *world) *caller {
	return &caller{w: w, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
}

func (c *caller) do(method, path, key, body string) (int, []byte, error) {
	req, err := http.NewRequest(method, c.w.URL+"/v1/projects/"+c.w.Project+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.w.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// field cuts one string field out of JSON without decoding the rest: the client
// must not eat the cores that it measures.
func field(body []byte, name string) string {
	_, rest, ok := bytes.Cut(body, []byte(`"`+name+`":"`))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// verb runs one operation to the end of its job.
func (c *caller) verb(method, path, key, body string) (id string, accept, done time.Duration, err error) {
	began := now()
	status, b, err := c.do(method, path, key, body)
	accept = now().Sub(began)
	if err != nil || status != http.StatusAccepted {
		return "", 0, 0, fmt.Errorf("%s %s: %d %v %s", method, path, status, err, b)
	}
	id, job := field(b, "resource_id"), field(b, "job_id")
	for {
		status, b, err = c.do(http.MethodGet, "/jobs/"+job+"/wait?timeout=30s", "", "")
		if err != nil || status != http.StatusOK {
			return "", 0, 0, fmt.Errorf("wait for %s: %d %v %s", job, status, err, b)
		}
		var j struct{ State string }
		if err := json.Unmarshal(b, &j); err != nil {
			return "", 0, 0, err
		}
		switch j.State {
		case "succeeded":
			return id, accept, now().Sub(began), nil
		case "failed", "cancelled", "needs_attention":
			return "", 0, 0, fmt.Errorf("job %s ended %s: %s", job, j.State, b)
		}
	}
}

// figures of one operation at one number of clients.
type figures struct {
	op              string
	clients, n      int
	rate            float64
	accept, done    []time.Duration
	cpu             time.Duration // of hcpd, per operation
	flushes, commit float64       // per operation
}

// measure runs op n times with that many clients and prints the row.
func measure(t *testing.T, w *world, op string, clients, n int, do func(c *caller, i int) (accept, done time.Duration, err error)) figures {
	t.Helper()
	f := figures{op: op, clients: clients, n: n}
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	before, cpu, began := w.metrics(t), w.cpu(t), now()
	for range clients {
		wg.Go(func() {
			c := newCaller(w)
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				accept, done, err := do(c, i)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				f.accept, f.done = append(f.accept, accept), append(f.done, done)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := now().Sub(began)
	after := w.metrics(t)
	f.rate = float64(len(f.done)) / took.Seconds()
	f.cpu = (w.cpu(t) - cpu) / time.Duration(max(len(f.done), 1))
	per := func(names ...string) (sum float64) {
		for _, name := range names {
			sum += after[name] - before[name]
		}
		return sum / float64(max(len(f.done), 1))
	}
	f.flushes = per("hcp_store_groups_total", "hcp_store_other_flushes_total")
	f.commit = per("hcp_store_commits_total")
	fmt.Printf("%-7s %7d %6d %9.0f/s %8s %8s %8s %8s %8.2f ms %8.2f %8.2f\n", op, clients, len(f.done), f.rate,
		ms(f.accept, .5), ms(f.accept, .99), ms(f.done, .5), ms(f.done, .99), float64(f.cpu.Microseconds())/1000, f.flushes, f.commit)
	return f
}

func ms(d []time.Duration, q float64) string {
	if len(d) == 0 {
		return "-"
	}
	slices.Sort(d)
	return fmt.Sprintf("%.1f ms", float64(d[min(int(q*float64(len(d))), len(d)-1)].Microseconds())/1000)
}
