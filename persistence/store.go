package persistence

import (
	"context"
	"time"

	"github.com/lotuscloud/hcp"
)

// Store is the whole contract. Every method is safe for concurrent use and
// honours ctx. A thing that is not there is *hcp.Error NOT_FOUND; trouble of the
// store itself is UNAVAILABLE.
type Store interface {
	Committer
	VMReader
	JobReader
	EventLog
	AuditLog
	QuotaReader
	Catalogue
	Infrastructure
	Keys
	Members
	// Generation identifies this database's history; a restored copy gets a new one.
	Generation(ctx context.Context) (string, error)
	// Stats counts what the store did since it was opened.
	Stats() Stats
	Close() error
}

// Stats are counters for metrics and the benchmark.
type Stats struct {
	Commits      int64 // members committed
	Groups       int64 // transactions of the group lane; each is one flush
	Refusals     int64
	OtherFlushes int64 // transactions outside of the lane
}

// Committer makes turns durable.
type Committer interface {
	// Commit blocks until c is on disk, or refused (*Refusal), or its outcome is
	// unknown (ErrUnknownOutcome). Cancelling ctx gives up waiting, not the commit:
	// the result is then ErrUnknownOutcome.
	Commit(ctx context.Context, c Commit) error
	// Submit is Commit without a waiting goroutine: done is called exactly once, from
	// the store's lane, and must not block. Commits of one actor are applied in the
	// order of their submission.
	Submit(c Commit, done func(error))
	// CheckFence answers in one statement whether a provider call may go out now: the
	// member row, the cluster's epoch, the VM's epoch and turn are all as given. It
	// returns a *Refusal of kind RefusedFenced when any moved.
	CheckFence(ctx context.Context, f Fence) error
}

// Fence is what must not have moved when a mutating provider call goes out.
type Fence struct {
	Node         string
	Incarnation  int64
	Cluster      hcp.ClusterID
	ClusterEpoch int64
	VM           hcp.VMID
	VMEpoch      int64
	Turn         Turn
}

// VMState is all an activation needs, in one consistent read.
type VMState struct {
	VM    hcp.VM
	Epoch int64
	Seq   int64
	Jobs  []hcp.Job // not final, by Queue
	Last  *hcp.Job  // the newest final job, for retry and residue
}

// VMFilter selects VMs; zero fields do not filter. Newest first, by (CreatedAt, ID).
type VMFilter struct {
	Project   hcp.ProjectID
	Org       hcp.OrgID
	Name      string
	State     hcp.State // judged with the cluster's reachability, see hcp.Known
	Lifecycle hcp.Lifecycle
	Zone      hcp.ZoneID
	Cluster   hcp.ClusterID
	Labels    map[string]string
	// WithDeleted also lists VMs whose deletion is done.
	WithDeleted bool
	Page        Page
}

// MaxLimit is the largest page of a caller, 1000, and one row more: it tells
// whether there is a next page.
const MaxLimit = 1001

// Page is a keyset page: rows strictly after After in list order.
type Page struct {
	After *Position
	Limit int // 1..MaxLimit
}

// Position is the key of the last row of a page.
type Position struct {
	CreatedAt time.Time `json:"t"`
	ID        string    `json:"i"`
}

// VMReader reads VMs joined with what their provider shows.
type VMReader interface {
	LoadVM(ctx context.Context, id hcp.VMID) (VMState, error)
	// GetVM finds by id, or by the name of a live VM of the project. With an empty
	// project it finds by id alone (operators). A VM of another project is NOT_FOUND.
	GetVM(ctx context.Context, project hcp.ProjectID, idOrName string) (hcp.Known, error)
	ListVMs(ctx context.Context, f VMFilter) ([]hcp.Known, error)
	// VMByRef finds the VM that holds a provider id of a cluster.
	VMByRef(ctx context.Context, cluster hcp.ClusterID, refID string) (hcp.Known, error)
}

// JobFilter selects jobs, newest first.
type JobFilter struct {
	Project hcp.ProjectID
	VM      hcp.VMID
	Cluster hcp.ClusterID
	Kind    hcp.JobKind
	State   hcp.JobState
	Page    Page
}

// DueJob is a non-final job whose actor should be active.
type DueJob struct {
	Job     hcp.JobID
	VM      hcp.VMID
	Cluster hcp.ClusterID
	WakeAt  time.Time
}

type JobReader interface {
	// GetJob finds by id; an empty project finds in all.
	GetJob(ctx context.Context, project hcp.ProjectID, id hcp.JobID) (hcp.Job, error)
	ListJobs(ctx context.Context, f JobFilter) ([]hcp.Job, error)
	// DueJobs lists non-final jobs with wake <= now, oldest wake first.
	DueJobs(ctx context.Context, now time.Time, limit int) ([]DueJob, error)
	// CountJobs counts non-final jobs by kind and state, for metrics.
	CountJobs(ctx context.Context) (map[hcp.JobKind]map[hcp.JobState]int, error)
}

// EventFilter selects published events.
type EventFilter struct {
	Project hcp.ProjectID // empty: all, and those of operators
	VM      hcp.VMID
	Types   []hcp.EventType
}

// EventLog is the journal and the outbox.
type EventLog interface {
	// Publish gives up to limit unpublished events their gap-free positions, keeping
	// each actor's order, and returns them in position order. One publisher at a time
	// calls it.
	Publish(ctx context.Context, limit int) ([]hcp.Event, error)
	// EventsAfter returns published events with Pos > pos in order, at most limit,
	// and the position up to which the log was searched: a caller goes on from there.
	EventsAfter(ctx context.Context, f EventFilter, pos int64, limit int) (events []hcp.Event, searched int64, err error)
	// FirstPosition and LastPosition bound what EventsAfter can still answer; an
	// older cursor is CURSOR_EXPIRED.
	FirstPosition(ctx context.Context) (int64, error)
	LastPosition(ctx context.Context) (int64, error)
	// VMHistory lists a VM's events by seq, published or not, newest first.
	VMHistory(ctx context.Context, vm hcp.VMID, beforeSeq int64, limit int) ([]hcp.Event, error)
	// PurgeEvents drops published events older than before; VMs are not touched.
	PurgeEvents(ctx context.Context, before time.Time) (int64, error)
}

// AuditFilter selects audit rows, newest first.
type AuditFilter struct {
	Project   hcp.ProjectID
	Actor     string
	Action    string
	Kind      hcp.AuditKind
	RequestID hcp.RequestID
	Page      Page // Position.CreatedAt is the row's time
}

type AuditLog interface {
	ListAudit(ctx context.Context, f AuditFilter) ([]hcp.AuditRecord, error)
}

// QuotaUse is one counter with its limit.
type QuotaUse struct {
	Subject hcp.QuotaSubject
	Lines   []hcp.QuotaLine // one per hcp.QuotaResources, in that order
}

// QuotaDrift is a counter that differs from what live holds add up to.
type QuotaDrift struct {
	Subject  hcp.QuotaSubject `json:"subject"`
	Resource hcp.Resource     `json:"resource"`
	Counter  int64            `json:"counter"`
	Derived  int64            `json:"derived"`
}

type QuotaReader interface {
	Quota(ctx context.Context, subjects []hcp.QuotaSubject) ([]QuotaUse, error)
	// VerifyQuota re-derives the counters from VM rows and open holds: a VM that is
	// neither deleted nor in error without residue must hold its sizes; nothing else
	// may. An empty project verifies everything. It returns differences only.
	VerifyQuota(ctx context.Context, project hcp.ProjectID) ([]QuotaDrift, error)
	// VerifyCapacity does the same for cluster claims; Subject.ID is the cluster.
	VerifyCapacity(ctx context.Context) ([]QuotaDrift, error)
	// ClusterCapacity returns limit and claimed per cluster.
	ClusterCapacity(ctx context.Context) (map[hcp.ClusterID]Capacity, error)
}

// Capacity of one cluster.
type Capacity struct {
	Limit   hcp.Sizes
	Claimed hcp.Sizes
}

// Catalogue reads records; they are written through Commit.Records.
type Catalogue interface {
	GetRecord(ctx context.Context, kind RecordKind, idOrName string) (Record, error)
	// ListRecords lists by name; an empty parent lists all.
	ListRecords(ctx context.Context, kind RecordKind, parent string) ([]Record, error)
}

// ClusterState is what a provider actor needs to activate.
type ClusterState struct {
	Cluster hcp.Cluster
	Epoch   int64
	Seq     int64
}

// Infrastructure holds clusters and what their providers show.
type Infrastructure interface {
	LoadCluster(ctx context.Context, idOrName string) (ClusterState, error)
	// ListClusters lists what is not deleted, by name.
	ListClusters(ctx context.Context) ([]ClusterState, error)
	Reachability(ctx context.Context) (map[hcp.ClusterID]hcp.Reachability, error)
	// PutReachability costs one write per cluster, however many VMs it has.
	PutReachability(ctx context.Context, cluster hcp.ClusterID, r hcp.Reachability) error
	// PutObserved stores a batch of changed observations in one transaction.
	PutObserved(ctx context.Context, rows []hcp.Observed) error
	ListObserved(ctx context.Context, cluster hcp.ClusterID) ([]hcp.Observed, error)
	// Secret returns sealed bytes stored through Commit.Secrets.
	Secret(ctx context.Context, name string) (hcp.Sealed, error)
}

// Keys are idempotency records and the key ring.
type Keys interface {
	// FindKey returns NOT_FOUND when no command with that key was accepted.
	FindKey(ctx context.Context, k hcp.IdempotencyKey) (IdempotencyRecord, error)
	// PurgeKeys drops records that expired before now and whose job is final.
	PurgeKeys(ctx context.Context, now time.Time) (int64, error)
	// RingKey returns the sealed key stored under purpose, storing fresh when there is
	// none: the first caller of all nodes wins, everybody gets the same bytes.
	RingKey(ctx context.Context, purpose string, fresh hcp.Sealed) (hcp.Sealed, error)
}

// Member is one node of the control plane.
type Member struct {
	Node        string
	Incarnation int64
	Version     string
	PeerAddr    string
	JoinedAt    time.Time
	RenewedAt   time.Time
	Gone        bool
}

type Members interface {
	// Join inserts or replaces the node's row with a new incarnation, higher than any before.
	Join(ctx context.Context, m Member) (incarnation int64, err error)
	// Renew is a Refusal of kind fenced when the row is gone or of another incarnation.
	Renew(ctx context.Context, node string, incarnation int64, at time.Time) error
	Leave(ctx context.Context, node string, incarnation int64) error
	ListMembers(ctx context.Context) ([]Member, error)
}
