package hcp

import (
	"fmt"
	"strings"
)

// LRN names one resource of LotusCloud in the whole world:
//
//	lrn:lotuscloud:{service}:{region}:{project}:{type}/{id}
//
// It is accepted wherever an id is. Region and project may be empty for
// resources that have none (an image, a cluster).
type LRN struct {
	Service string // always "compute" for what HCP owns
	Region  string
	Project ProjectID
	Type    string // vm, job, image, flavor, zone, cluster, org, project
	ID      string
}

const lrnPrefix = "lrn:lotuscloud:"

// ServiceCompute is the LRN service of everything HCP owns.
const ServiceCompute = "compute"

func (l LRN) String() string {
	return lrnPrefix + l.Service + ":" + l.Region + ":" + string(l.Project) + ":" + l.Type + "/" + l.ID
}

// lrnTypes maps the type word of an LRN to the kind of id it must carry.
var lrnTypes = map[string]IDKind{
	"vm": KindVM, "job": KindJob, "image": KindImage, "flavor": KindFlavor, "zone": KindZone,
	"cluster": KindCluster, "org": KindOrg, "project": KindProject,
}

// LooksLikeLRN reports whether s means to be an LRN, well-formed or not.
func LooksLikeLRN(s string) bool { return strings.HasPrefix(s, "lrn:") }

// ParseLRN is strict; the error is INVALID_REQUEST and says which part is wrong.
func ParseLRN(s string) (LRN, error) {
	bad := func(why string) (LRN, error) {
		return LRN{}, Errorf(CodeInvalidRequest, "malformed_lrn", "the LRN is malformed: %s", why).
			WithHint("an LRN looks like lrn:lotuscloud:compute:region:project:vm/vm_...")
	}
	rest, ok := strings.CutPrefix(s, lrnPrefix)
	if !ok {
		return bad("it must begin with " + lrnPrefix)
	}
	parts := strings.SplitN(rest, ":", 4)
	if len(parts) != 4 {
		return bad("it must have six parts separated by colons")
	}
	typ, id, ok := strings.Cut(parts[3], "/")
	if !ok {
		return bad("its last part must be type/id")
	}
	kind, known := lrnTypes[typ]
	if !known {
		return bad("its type is unknown")
	}
	if !IsID(kind, id) {
		return bad(fmt.Sprintf("its id is not a %s id", typ))
	}
	if parts[2] != "" && !IsID(KindProject, parts[2]) {
		return bad("its project is not a project id")
	}
	return LRN{Service: parts[0], Region: parts[1], Project: ProjectID(parts[2]), Type: typ, ID: id}, nil
}

// LRNOfVM and its siblings build the LRN of a resource.
func LRNOfVM(region string, project ProjectID, id VMID) string {
	return LRN{ServiceCompute, region, project, "vm", string(id)}.String()
}

func LRNOfJob(region string, project ProjectID, id JobID) string {
	return LRN{ServiceCompute, region, project, "job", string(id)}.String()
}

// LRNOf is the LRN of a resource that belongs to no region or project.
func LRNOf(typ, id string) string { return LRN{ServiceCompute, "", "", typ, id}.String() }
