package hcp

import "time"

// ClusterView is an operator's sight of a cluster: everything but credentials.
// It is the body of every answer to a cluster command.
type ClusterView struct {
	ID           ClusterID         `json:"id"`
	LRN          string            `json:"lrn"`
	Name         string            `json:"name"`
	Driver       string            `json:"driver"`
	Endpoint     string            `json:"endpoint"`
	Options      map[string]string `json:"options"`
	Maintenance  bool              `json:"maintenance"`
	Info         *ClusterInfoView  `json:"info,omitempty" doc:"What the last successful probe found; absent before it"`
	Reachability *Reachability     `json:"reachability,omitempty"`
	Limit        *Sizes            `json:"limit,omitempty" doc:"How much may be claimed"`
	Claimed      *Sizes            `json:"claimed,omitempty" doc:"How much is claimed by VMs"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
}

// ClusterInfoView is ClusterInfo with the units in the names.
type ClusterInfoView struct {
	Version      string       `json:"version"`
	Hosts        []Host       `json:"hosts"`
	Capabilities Capabilities `json:"capabilities"`
	Capacity     Sizes        `json:"capacity"`
	ClockSkewMS  int64        `json:"clock_skew_ms"`
	SettleTimeMS int64        `json:"settle_time_ms"`
	ProbedAt     time.Time    `json:"probed_at"`
}

// View renders the cluster; r and the capacity are what is known apart from the
// record, nil when nothing is.
func (c Cluster) View(r *Reachability, limit, claimed *Sizes) ClusterView {
	v := ClusterView{
		ID: c.ID, LRN: LRNOf("cluster", string(c.ID)), Name: c.Name, Driver: c.Driver, Endpoint: c.Endpoint,
		Options: c.Options, Maintenance: c.Maintenance, Reachability: r, Limit: limit, Claimed: claimed,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	if v.Options == nil {
		v.Options = map[string]string{}
	}
	if i := c.Info; i != nil {
		v.Info = &ClusterInfoView{i.Version, i.Hosts, i.Capabilities, i.Capacity, i.ClockSkew.Milliseconds(),
			i.SettleTime.Milliseconds(), i.ProbedAt}
		if v.Info.Hosts == nil {
			v.Info.Hosts = []Host{}
		}
		if v.Info.Capabilities == nil {
			v.Info.Capabilities = Capabilities{}
		}
	}
	return v
}

// OrphanList answers cluster.orphans: machines on the cluster that no VM record
// accounts for. They are listed, never touched.
type OrphanList struct {
	Items []Orphan `json:"items"`
	// Unreached names hosts that did not answer: the list may lack theirs.
	Unreached []string `json:"unreached"`
}

// Orphan is one such machine.
type Orphan struct {
	Ref    ProviderRef `json:"ref"`
	Name   string      `json:"name"`
	Marker VMID        `json:"marker,omitempty"` // our marker without a record; empty: no marker of ours
	Power  Power       `json:"power"`
	SeenAt time.Time   `json:"seen_at"`
}
