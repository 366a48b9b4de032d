package world

import (
	"slices"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Version is what the simulated cluster says of itself.
const Version = "hcp-sim 1"

// Get reads one machine.
func (w *World) Get(req simapi.Target) (simapi.Machine, *simapi.Error) {
	m, err := w.ready(req)
	if err != nil {
		return simapi.Machine{}, err
	}
	return w.view(m), nil
}

// Find returns every machine with the marker on the hosts that answer.
func (w *World) Find(req simapi.FindRequest) (simapi.MachinesAnswer, *simapi.Error) {
	if req.Marker == "" {
		return simapi.MachinesAnswer{}, simapi.Errorf(simapi.CodeBadRequest, "marker is missing")
	}
	a := simapi.MachinesAnswer{Machines: []simapi.Machine{}, Unreached: w.unreached()}
	for _, id := range w.markers[req.Marker] {
		if m := w.machines[id]; !w.hidden(m) {
			a.Machines = append(a.Machines, w.view(m))
		}
	}
	return a, nil
}

// List returns one page of all machines on the hosts that answer.
func (w *World) List(req simapi.ListRequest) (simapi.MachinesAnswer, *simapi.Error) {
	if req.Limit == 0 {
		req.Limit = 1000
	}
	if req.Limit < 1 || req.Limit > 1000 {
		return simapi.MachinesAnswer{}, simapi.Errorf(simapi.CodeBadRequest, "limit must be 1 to 1000")
	}
	ids := w.order()
	from, found := slices.BinarySearch(ids, req.After)
	if found {
		from++
	}
	a := simapi.MachinesAnswer{Machines: make([]simapi.Machine, 0, min(req.Limit, len(ids)-from)), Unreached: w.unreached()}
	for _, id := range ids[from:] {
		if len(a.Machines) == req.Limit {
			a.Next = a.Machines[len(a.Machines)-1].ID
			break
		}
		if m := w.machines[id]; !w.hidden(m) && !w.omitted(id) {
			a.Machines = append(a.Machines, w.view(m))
		}
	}
	return a, nil
}

// omitted uses up one hit of omit.
func (w *World) omitted(id string) bool {
	n, ok := w.omit[id]
	if !ok {
		return false
	}
	w.touchFlag(&w.changed.omit)
	if n > 0 {
		n--
		w.omit[id] = n
	}
	if n == 0 {
		delete(w.omit, id)
	}
	return true
}

func (w *World) hidden(m *machine) bool {
	h := w.host(m.Host)
	return h != nil && h.Down
}

func (w *World) unreached() (names []string) {
	for _, h := range w.hosts {
		if h.Down {
			names = append(names, h.Name)
		}
	}
	return names
}

// Task reads one task.
func (w *World) Task(req simapi.TaskRequest) (simapi.Task, *simapi.Error) {
	t := w.tasks[req.ID]
	if t == nil || t.Lost || t.Limbo {
		return simapi.Task{}, simapi.Errorf(simapi.CodeNoTask, "there is no task %q", req.ID)
	}
	return t.Task, nil
}

// Cluster describes the cluster.
func (w *World) Cluster() simapi.ClusterAnswer {
	a := simapi.ClusterAnswer{Version: Version, Now: w.now, Images: w.images}
	for _, h := range w.hosts {
		a.Hosts = append(a.Hosts, *h)
	}
	return a
}

// All lists every machine and volume, whatever the faults say: the truth for tests and people.
func (w *World) All() simapi.ListAnswer {
	a := simapi.ListAnswer{Machines: []simapi.ListedEntry{}, Volumes: []simapi.Volume{}}
	for _, id := range w.order() {
		v := w.view(w.machines[id])
		a.Machines = append(a.Machines, simapi.ListedEntry{Machine: v, Ours: v.Marker != ""})
	}
	for _, v := range w.volumes {
		a.Volumes = append(a.Volumes, v)
	}
	slices.SortFunc(a.Volumes, func(x, y simapi.Volume) int {
		if x.ID < y.ID {
			return -1
		}
		return 1
	})
	return a
}
