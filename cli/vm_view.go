package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lotuscloud/hcp"
)

// vmListing shows VMs. The first column answers to the next command: the name,
// and the id where the name is free already.
var vmListing = listing[hcp.VMView]{
	noun: "VMs",
	name: vmName,
	columns: []column[hcp.VMView]{
		{head: "NAME", keep: true, cell: func(_ *app, v hcp.VMView) string { return vmName(v) }},
		{head: "STATE", state: true, keep: true, cell: func(a *app, v hcp.VMView) string { return stateText(v) }},
		{head: "ADDRESS", cell: func(_ *app, v hcp.VMView) string { return addressText(v) }},
		{head: "ZONE", cell: func(_ *app, v hcp.VMView) string { return v.Zone }},
		{head: "FLAVOR", cell: func(_ *app, v hcp.VMView) string { return v.Flavor.Name }},
		{head: "IMAGE", cell: func(_ *app, v hcp.VMView) string { return v.Image.Name }},
		{head: "AGE", keep: true, cell: func(a *app, v hcp.VMView) string { return a.when(v.CreatedAt) }},
		{head: "ID", isWide: true, keep: true, cell: func(_ *app, v hcp.VMView) string { return string(v.ID) }},
		{head: "LAST SEEN", isWide: true, cell: lastSeenText},
		{head: "LAST JOB", isWide: true, cell: func(_ *app, v hcp.VMView) string { return lastJobText(v.LastJob) }},
		{head: "OWNER", isWide: true, cell: func(_ *app, v hcp.VMView) string { return v.Owner }},
		{head: "LABELS", isWide: true, cell: func(_ *app, v hcp.VMView) string { return labelText(v.Labels) }},
	},
}

// vmName is what the VM answers to.
func vmName(v hcp.VMView) string {
	holdsName := v.Lifecycle != hcp.LifecycleDeleting && v.Lifecycle != hcp.LifecycleDeleted && v.State != hcp.StateDeleting
	if v.Name == "" || !holdsName {
		return string(v.ID)
	}
	return v.Name
}

// stateText never claims more than is known: an unknown state tells the last word.
func stateText(v hcp.VMView) string {
	if v.State == hcp.StateUnknown && v.LastSeen != nil && v.LastSeen.Power != hcp.PowerUnknown {
		return "unknown (was " + string(v.LastSeen.Power) + ")"
	}
	return string(v.State)
}

func lastSeenText(a *app, v hcp.VMView) string {
	if v.LastSeen == nil || v.LastSeen.At.IsZero() {
		return ""
	}
	return string(v.LastSeen.Power) + " " + a.when(v.LastSeen.At)
}

func lastJobText(j *hcp.LastJob) string {
	if j == nil {
		return ""
	}
	text := string(j.Kind) + " " + string(j.State)
	if j.Error != nil {
		text += " " + string(j.Error.Code)
	}
	return text
}

func addressText(v hcp.VMView) string {
	var ips []string
	for _, a := range v.Addresses {
		ips = append(ips, a.IP)
	}
	return strings.Join(ips, ",")
}

func labelText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

// vmDetails is everything a person wants to know of one VM.
func vmDetails(v hcp.VMView) [][2]string {
	d := [][2]string{
		{"Name", v.Name}, {"ID", string(v.ID)}, {"LRN", v.LRN}, {"State", stateText(v)}, {"Wished", string(v.Desired.Power)},
		{"Activity", v.Activity}, {"Project", string(v.Project)}, {"Zone", v.Zone}, {"Hostname", v.Hostname},
	}
	if v.LastSeen != nil && !v.LastSeen.At.IsZero() {
		d = append(d, [2]string{"Last seen", string(v.LastSeen.Power) + ", at " + rfc3339(v.LastSeen.At)})
	}
	for _, a := range v.Addresses {
		d = append(d, [2]string{"Address", a.IP + " (" + a.Source + ")"})
	}
	d = append(d, [][2]string{
		{"Flavor", v.Flavor.Name + " (" + sizeText(v.Flavor.VCPUs, v.Flavor.MemoryMiB, v.Flavor.DiskGiB) + ")"},
		{"Image", strings.TrimSpace(v.Image.Name + " " + v.Image.Version)}, {"Image sha256", v.Image.SHA256},
		{"Labels", labelText(v.Labels)}, {"Owner", v.Owner}, {"Description", v.Description},
		{"Protected", yesNo(v.DeletionProtection)}, {"Generation", strconv.FormatInt(v.Generation, 10)},
		{"Created", rfc3339(v.CreatedAt)}, {"Updated", rfc3339(v.UpdatedAt)},
	}...)
	if j := v.LastJob; j != nil {
		d = append(d, [2]string{"Last job", string(j.ID) + " " + lastJobText(j)})
		if j.Error != nil {
			d = append(d, [2]string{"Error", j.Error.Message}, [2]string{"Hint", j.Error.Hint})
		}
	}
	for _, c := range v.Conditions {
		d = append(d, [2]string{"Condition", c.Type + " (" + c.Reason + ") since " + rfc3339(c.Since) + ": " + c.Message})
	}
	return d
}

func sizeText(vcpus, memoryMiB, diskGiB int) string {
	return strconv.Itoa(vcpus) + " vCPU, " + strconv.Itoa(memoryMiB) + " MiB, " + strconv.Itoa(diskGiB) + " GiB"
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
