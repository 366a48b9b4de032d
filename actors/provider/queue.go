package provider

import "github.com/lotuscloud/hcp"

// fairQueue gives each project its turn: one with a thousand jobs waiting delays
// another's next by one, not by a thousand. Within a project it is first come,
// first served.
type fairQueue struct {
	byProject map[hcp.ProjectID][]Work
	ring      []hcp.ProjectID // projects with work; the first is next
}

func (q *fairQueue) push(w Work) {
	if q.byProject == nil {
		q.byProject = map[hcp.ProjectID][]Work{}
	}
	if len(q.byProject[w.Project]) == 0 {
		q.ring = append(q.ring, w.Project)
	}
	q.byProject[w.Project] = append(q.byProject[w.Project], w)
}

func (q *fairQueue) pop() (Work, bool) {
	if len(q.ring) == 0 {
		return Work{}, false
	}
	project := q.ring[0]
	q.ring = q.ring[1:]
	works := q.byProject[project]
	w := works[0]
	if len(works) == 1 {
		delete(q.byProject, project)
	} else {
		works[0] = Work{}
		q.byProject[project] = works[1:]
		q.ring = append(q.ring, project)
	}
	return w, true
}

func (q *fairQueue) len() int {
	n := 0
	for _, works := range q.byProject {
		n += len(works)
	}
	return n
}
