package world

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

// Record is what one call changed, as values and not as deltas: applying the
// records of a journal in order gives the world back, applying one twice does no
// harm. A snapshot of the world is a few records as well.
type Record struct {
	Machines []*machine                 `json:"m,omitempty"`
	Gone     []string                   `json:"mx,omitempty"`
	Tasks    []*task                    `json:"t,omitempty"`
	Volumes  []simapi.Volume            `json:"v,omitempty"`
	NoVolume []string                   `json:"vx,omitempty"`
	Consoles *map[string]string         `json:"c,omitempty"`
	Omit     *map[string]int            `json:"o,omitempty"`
	Hosts    []*simapi.Host             `json:"h,omitempty"`
	Images   []simapi.Image             `json:"i,omitempty"`
	Settings *settings                  `json:"f,omitempty"`
	Seq      *sequence                  `json:"s,omitempty"`
	Counts   map[simapi.Op]simapi.Count `json:"n,omitempty"`
}

// changes remembers what a call touched until Drain.
type changes struct {
	any                                          bool
	machines                                     map[string]bool
	tasks                                        []*task
	volumes                                      map[string]bool
	counts                                       map[simapi.Op]bool
	consoles, omit, hosts, images, settings, seq bool
}

func newChanges() changes {
	return changes{machines: map[string]bool{}, volumes: map[string]bool{}, counts: map[simapi.Op]bool{}}
}

func (w *World) touch(id string) { w.changed.any = true; w.changed.machines[id] = true }
func (w *World) touchTask(t *task) {
	w.changed.any = true
	if !slices.Contains(w.changed.tasks, t) {
		w.changed.tasks = append(w.changed.tasks, t)
	}
}
func (w *World) touchVolume(id string) { w.changed.any = true; w.changed.volumes[id] = true }
func (w *World) touchFlag(flag *bool)  { w.changed.any = true; *flag = true }

// count notes a call or an effect. A read that changes nothing is counted in
// memory and kept with the next change.
func (w *World) count(op simapi.Op, calls, effects int64) {
	c := w.counts[op]
	c.Calls += calls
	c.Effects += effects
	w.counts[op] = c
	w.changed.counts[op] = true
	if op.Mutating() {
		w.changed.any = true
	}
}

// Drain returns what changed since the last Drain, nil when nothing did.
func (w *World) Drain() *Record {
	c := &w.changed
	if !c.any {
		return nil
	}
	r := &Record{Tasks: c.tasks}
	for id := range c.machines {
		if m := w.machines[id]; m != nil {
			r.Machines = append(r.Machines, m)
		} else {
			r.Gone = append(r.Gone, id)
		}
	}
	for id := range c.volumes {
		if v, ok := w.volumes[id]; ok {
			r.Volumes = append(r.Volumes, v)
		} else {
			r.NoVolume = append(r.NoVolume, id)
		}
	}
	if len(c.counts) > 0 {
		r.Counts = make(map[simapi.Op]simapi.Count, len(c.counts))
		for op := range c.counts {
			r.Counts[op] = w.counts[op]
		}
	}
	w.fill(r, c.consoles, c.omit, c.hosts, c.images, c.settings, c.seq)
	clear(c.machines)
	clear(c.volumes)
	clear(c.counts)
	*c = changes{machines: c.machines, volumes: c.volumes, counts: c.counts}
	return r
}

func (w *World) fill(r *Record, consoles, omit, hosts, images, settings, seq bool) {
	if consoles {
		r.Consoles = &w.consoles
	}
	if omit {
		r.Omit = &w.omit
	}
	if hosts {
		r.Hosts = w.hosts
	}
	if images {
		r.Images = w.images
	}
	if settings {
		r.Settings = &w.settings
	}
	if seq {
		r.Seq = &w.seq
	}
}

// Snapshot yields records that make up the whole world. They share memory with
// it: encode each before the next call.
func (w *World) Snapshot(yield func(*Record) error) error {
	head := &Record{Counts: w.counts}
	w.fill(head, true, true, true, true, true, true)
	for _, v := range w.volumes {
		head.Volumes = append(head.Volumes, v)
	}
	if err := yield(head); err != nil {
		return err
	}
	machines := slices.Collect(maps.Values(w.machines))
	for chunk := range slices.Chunk(machines, 256) {
		if err := yield(&Record{Machines: chunk}); err != nil {
			return err
		}
	}
	var tasks []*task
	for _, id := range w.finished {
		tasks = append(tasks, w.tasks[id])
	}
	for _, t := range w.tasks {
		if t.State == simapi.TaskRunning && t.act != nil { // a hung read ends with its connection
			tasks = append(tasks, t)
		}
	}
	for chunk := range slices.Chunk(tasks, 256) {
		if err := yield(&Record{Tasks: chunk}); err != nil {
			return err
		}
	}
	return nil
}

// Restore makes an empty world that Apply fills with a snapshot and a journal.
func Restore() *World { return empty() }

// Apply takes in a record of Snapshot or Drain.
func (w *World) Apply(r *Record) error {
	if r.Hosts != nil {
		w.hosts = r.Hosts
		for _, h := range w.hosts {
			h.Used = simapi.Sizes{}
		}
		for _, m := range w.machines {
			w.account(m, 1)
		}
	}
	for _, id := range r.Gone {
		w.drop(id)
	}
	for _, m := range r.Machines {
		w.put(m)
	}
	for _, v := range r.Volumes {
		w.volumes[v.ID] = v
	}
	for _, id := range r.NoVolume {
		delete(w.volumes, id)
	}
	if r.Consoles != nil {
		w.consoles = *r.Consoles
	}
	if r.Omit != nil {
		w.omit = *r.Omit
	}
	if r.Images != nil {
		w.images = r.Images
	}
	if r.Settings != nil {
		w.settings = *r.Settings
		if w.settings.Faults == nil {
			w.settings.Faults = map[simapi.Op]simapi.OpState{}
		}
	}
	if r.Seq != nil {
		w.seq = *r.Seq
	}
	maps.Copy(w.counts, r.Counts)
	for _, t := range r.Tasks {
		if err := w.applyTask(t); err != nil {
			return err
		}
	}
	return nil
}

// order sorts the ids for a list, once after changes.
func (w *World) order() []string {
	if w.sorted != len(w.ids) || len(w.ids) != len(w.machines) {
		w.ids = slices.DeleteFunc(w.ids, func(id string) bool { return w.machines[id] == nil })
		slices.Sort(w.ids)
		w.ids = slices.Compact(w.ids)
		w.sorted = len(w.ids)
	}
	return w.ids
}

// byNumber orders task ids as they were given.
func byNumber(a, b string) int {
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	return cmp.Compare(x, y)
}
