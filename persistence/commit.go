package persistence

import (
	"errors"
	"fmt"
	"time"

	"github.com/lotuscloud/hcp"
)

// ActorKind tells the actors that own rows.
type ActorKind string

const (
	ActorVM      ActorKind = "vm"
	ActorCluster ActorKind = "cluster"
	// ActorNone is a commit of no actor: catalogue changes, refused calls. It is not
	// fenced; its records carry their own versions.
	ActorNone ActorKind = ""
)

// ActorRef names the actor whose turn a commit makes durable.
type ActorRef struct {
	Kind ActorKind
	ID   string
}

// Commit is all that one actor turn makes durable. It is applied whole or not
// at all. Many commits may share one transaction (group commit); a refused one
// never fails its neighbours.
type Commit struct {
	Actor ActorRef
	// Epoch and Seq are what the row must carry now; the store writes Seq+1. Epoch 0
	// with Seq 0 inserts the row with epoch 1: a VM exists from its create commit on,
	// never before. A mismatch is RefusedFenced.
	Epoch int64
	Seq   int64
	// Claim is set on the first commit of an activation: the store writes Epoch+1,
	// which fences every older activation.
	Claim bool

	VM      *hcp.VM      // the row after this turn; nil: unchanged
	Turn    *Turn        // who may call the provider for this VM from now on; nil: unchanged
	Cluster *hcp.Cluster // for cluster actors
	Jobs    []hcp.Job    // inserted or replaced by id; all of Actor's VM
	// Wake says when a non-final job of this commit wants its actor active again.
	Wake   map[hcp.JobID]time.Time
	Events []hcp.Event // journal and outbox in one; Seq is set by the store
	Holds  []QuotaChange
	Claims []CapacityChange
	Key    *IdempotencyRecord
	Audit  []hcp.AuditRecord

	Records      []RecordChange // catalogue rows
	Limits       []LimitChange  // quota limits
	Secrets      []SecretChange
	Capacity     []CapacityLimit
	DropObserved []hcp.VMID // observed rows that end with this turn
}

// Turn is the intent that a provider call must find unchanged: no intent, no
// call. The zero Turn permits nothing.
type Turn struct {
	Job     hcp.JobID
	Step    string
	Attempt int
}

// QuotaChange holds or releases what one VM counts as: for each resource one row
// keyed (vm, resource), and the three counters of Subjects, together or none.
// Holding what is held already with the same amounts is no change; with other
// amounts it replaces. Releasing what is not held is no change.
type QuotaChange struct {
	VM       hcp.VMID
	Subjects []hcp.QuotaSubject
	Amounts  map[hcp.Resource]int64 // nil or empty: release
}

// CapacityChange claims or releases a VM's room on a cluster, keyed (cluster,
// vm). The same rules of repetition as for QuotaChange hold.
type CapacityChange struct {
	Cluster hcp.ClusterID
	Host    string
	VM      hcp.VMID
	Sizes   hcp.Sizes // zero: release
}

// CapacityLimit says how much may be claimed on a cluster; without a row nothing may.
type CapacityLimit struct {
	Cluster hcp.ClusterID
	Limit   hcp.Sizes
}

// LimitChange sets the limit of one quota counter.
type LimitChange struct {
	Subject  hcp.QuotaSubject
	Resource hcp.Resource
	Limit    hcp.Limit
}

// IdempotencyRecord remembers an accepted command: unique on (principal,
// project, method, path, key).
type IdempotencyRecord struct {
	hcp.IdempotencyKey
	Status    int
	Body      []byte
	VM        hcp.VMID
	Job       hcp.JobID
	CreatedAt time.Time
	ExpiresAt time.Time // the purge leaves records whose job is not final
}

// RecordKind names a catalogue table.
type RecordKind string

const (
	RecordOrg     RecordKind = "org"
	RecordProject RecordKind = "project"
	RecordZone    RecordKind = "zone"
	RecordImage   RecordKind = "image"
	RecordFlavor  RecordKind = "flavor"
	RecordBinding RecordKind = "role_binding"
)

// Record is one catalogue row. Body is the JSON of the domain type and opaque
// to the store. (Kind, Name) is unique; Name may be empty where rows have none.
type Record struct {
	Kind    RecordKind
	ID      string
	Name    string
	Parent  string // e.g. the org of a project
	Version int64
	Body    []byte
}

// RecordChange puts or deletes a record. Version is what the row must carry now:
// 0 inserts. A mismatch is RefusedVersion, a taken name RefusedName.
type RecordChange struct {
	Record
	Delete bool
}

// SecretChange stores sealed bytes under a name; nil deletes them.
type SecretChange struct {
	Name   string // "cluster/{id}/credentials"
	Sealed hcp.Sealed
}

// RefusalKind says why a commit was not applied. A refused commit changed nothing.
type RefusalKind string

const (
	// RefusedFenced: epoch or seq moved; another activation owns the row. The actor
	// must drop its state and passivate.
	RefusedFenced RefusalKind = "fenced"
	// RefusedKey: a record with this idempotency key exists; Refusal.Record is it.
	RefusedKey      RefusalKind = "duplicate_key"
	RefusedQuota    RefusalKind = "quota"    // Refusal.Err is QUOTA_EXCEEDED
	RefusedCapacity RefusalKind = "capacity" // Refusal.Err is NO_CAPACITY
	RefusedName     RefusalKind = "name"     // a live VM of the project, or a record, has the name
	RefusedRef      RefusalKind = "ref"      // another VM of the cluster has this provider id
	RefusedVersion  RefusalKind = "version"  // a catalogue record moved
)

// Refusal is the error of a commit that the store understood and did not apply.
type Refusal struct {
	Kind   RefusalKind
	Record *IdempotencyRecord
	Err    *hcp.Error // what to tell the caller
}

func (r *Refusal) Error() string { return fmt.Sprintf("commit refused (%s): %v", r.Kind, r.Err) }

func (r *Refusal) Unwrap() error {
	if r.Err == nil {
		return nil
	}
	return r.Err
}

// RefusalOf finds a Refusal in a chain.
func RefusalOf(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

// ErrUnknownOutcome says that the store cannot tell whether the commit was
// applied (the connection was lost at COMMIT). The actor re-reads; it never
// retries from memory.
var ErrUnknownOutcome = errors.New("the outcome of the commit is not known")

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("the store is closed")
