// Package observability holds HCP's metrics and log set-up: what is counted, under
// which name, with bounded labels only (never a VM id or a tenant's word).
package observability

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Metrics is the registry and what is counted as it happens.
type Metrics struct {
	Registry *prometheus.Registry

	requests     *prometheus.CounterVec
	latency      *prometheus.HistogramVec
	jobs         *prometheus.CounterVec
	jobTime      *prometheus.HistogramVec
	calls        *prometheus.HistogramVec
	providerErrs *prometheus.CounterVec
}

var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// NewMetrics makes the registry with the runtime's own figures and those below.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		Registry:     prometheus.NewRegistry(),
		requests:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hcp_http_requests_total", Help: "API calls by route, method, status and error code."}, []string{"route", "method", "status", "code"}),
		latency:      prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hcp_http_request_duration_seconds", Help: "API call latency by route.", Buckets: seconds}, []string{"route", "method"}),
		jobs:         prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hcp_jobs_finished_total", Help: "Jobs by kind, result and error code."}, []string{"kind", "result", "code"}),
		jobTime:      prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hcp_job_duration_seconds", Help: "From acceptance to the end of a job.", Buckets: seconds}, []string{"kind", "result"}),
		calls:        prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hcp_provider_request_duration_seconds", Help: "Provider calls by cluster and operation.", Buckets: seconds}, []string{"cluster", "op"}),
		providerErrs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hcp_provider_errors_total", Help: "Provider errors by cluster, operation and code."}, []string{"cluster", "op", "code"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hcp_build_info", Help: "The program's version; always 1."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, m.requests, m.latency, m.jobs, m.jobTime, m.calls, m.providerErrs)
	return m
}

// Request counts one API call.
func (m *Metrics) Request(route, method string, status int, code hcp.Code, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status), string(code)).Inc()
	m.latency.WithLabelValues(route, method).Observe(took.Seconds())
}

// JobEnded counts one job.
func (m *Metrics) JobEnded(kind hcp.JobKind, state hcp.JobState, code hcp.Code, took time.Duration) {
	m.jobs.WithLabelValues(string(kind), string(state), string(code)).Inc()
	m.jobTime.WithLabelValues(string(kind), string(state)).Observe(took.Seconds())
}

// ProviderCalled counts one provider call.
func (m *Metrics) ProviderCalled(cluster hcp.ClusterID, op string, code hcp.Code, took time.Duration) {
	m.calls.WithLabelValues(string(cluster), op).Observe(took.Seconds())
	if code != "" {
		m.providerErrs.WithLabelValues(string(cluster), op, string(code)).Inc()
	}
}

// Watch adds figures that are read when they are asked for.
func (m *Metrics) Watch(store persistence.Store, actors func() (active, quarantined, activations, panics int64)) {
	m.Registry.MustRegister(&reader{store: store, actors: actors})
}

// reader reads the store's and the actors' figures at scrape time.
type reader struct {
	store  persistence.Store
	actors func() (active, quarantined, activations, panics int64)
}

var (
	descCommits     = prometheus.NewDesc("hcp_store_commits_total", "Actor turns made durable.", nil, nil)
	descGroups      = prometheus.NewDesc("hcp_store_groups_total", "Transactions of the group lane; each is one flush.", nil, nil)
	descRefusals    = prometheus.NewDesc("hcp_store_refusals_total", "Commits that the store refused.", nil, nil)
	descFlushes     = prometheus.NewDesc("hcp_store_other_flushes_total", "Transactions outside of the group lane.", nil, nil)
	descJobs        = prometheus.NewDesc("hcp_jobs", "Jobs that are not final, by kind and state.", []string{"kind", "state"}, nil)
	descUp          = prometheus.NewDesc("hcp_provider_up", "Whether the provider cluster answers.", []string{"cluster"}, nil)
	descActors      = prometheus.NewDesc("hcp_actors", "VM actors in memory.", nil, nil)
	descQuarantined = prometheus.NewDesc("hcp_actors_quarantined", "VM actors that panicked repeatedly.", nil, nil)
	descActivations = prometheus.NewDesc("hcp_actor_activations_total", "Activations of VM actors.", nil, nil)
	descPanics      = prometheus.NewDesc("hcp_actor_panics_total", "Panics of VM actors.", nil, nil)
)

func (r *reader) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descCommits, descGroups, descRefusals, descFlushes, descJobs, descUp, descActors,
		descQuarantined, descActivations, descPanics} {
		ch <- d
	}
}

func (r *reader) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	count := func(d *prometheus.Desc, n int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	s := r.store.Stats()
	count(descCommits, s.Commits)
	count(descGroups, s.Groups)
	count(descRefusals, s.Refusals)
	count(descFlushes, s.OtherFlushes)
	active, quarantined, activations, panics := r.actors()
	gauge(descActors, float64(active))
	gauge(descQuarantined, float64(quarantined))
	count(descActivations, activations)
	count(descPanics, panics)
	if jobs, err := r.store.CountJobs(ctx); err == nil {
		for kind, states := range jobs {
			for state, n := range states {
				gauge(descJobs, float64(n), string(kind), string(state))
			}
		}
	}
	if reach, err := r.store.Reachability(ctx); err == nil {
		for id, c := range reach {
			up := 0.0
			if c.Reachable {
				up = 1
			}
			gauge(descUp, up, string(id))
		}
	}
}
