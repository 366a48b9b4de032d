package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lotuscloud/hcp"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func upper(s string) string { return strings.ToUpper(s) }

var imageListing = listing[v1.Image]{
	noun: "images", name: func(i v1.Image) string { return i.Name },
	columns: []column[v1.Image]{
		{head: "NAME", keep: true, cell: func(_ *app, i v1.Image) string { return i.Name }},
		{head: "VERSION", cell: func(_ *app, i v1.Image) string { return i.Version }},
		{head: "STATE", state: true, cell: func(_ *app, i v1.Image) string { return string(i.State) }},
		{head: "FIRMWARE", cell: func(_ *app, i v1.Image) string { return string(i.Firmware) }},
		{head: "ZONES", cell: func(_ *app, i v1.Image) string { return strings.Join(i.Zones, ",") }},
		{head: "AGE", keep: true, cell: func(a *app, i v1.Image) string { return a.when(i.CreatedAt) }},
		{head: "MIN DISK", isWide: true, right: true, cell: func(_ *app, i v1.Image) string { return strconv.Itoa(i.MinDiskGiB) + " GiB" }},
		{head: "MIN MEMORY", isWide: true, right: true, cell: func(_ *app, i v1.Image) string { return strconv.Itoa(i.MinMemoryMiB) + " MiB" }},
		{head: "ID", isWide: true, keep: true, cell: func(_ *app, i v1.Image) string { return string(i.ID) }},
		{head: "SHA256", isWide: true, keep: true, cell: func(_ *app, i v1.Image) string { return i.SHA256 }},
	},
}

var opsImageListing = func() listing[v1.OpsImage] {
	l := mapListing(imageListing, func(i v1.OpsImage) v1.Image { return i.Image })
	l.columns = append(l.columns, column[v1.OpsImage]{head: "CLUSTERS", isWide: true, cell: func(_ *app, i v1.OpsImage) string {
		return joinWords(slices.Sorted(maps.Keys(i.Artefacts)))
	}})
	return l
}()

var flavorListing = listing[v1.Flavor]{
	noun: "flavors", name: func(f v1.Flavor) string { return f.Name },
	columns: []column[v1.Flavor]{
		{head: "NAME", keep: true, cell: func(_ *app, f v1.Flavor) string { return f.Name }},
		{head: "VCPUS", right: true, cell: func(_ *app, f v1.Flavor) string { return strconv.Itoa(f.VCPUs) }},
		{head: "MEMORY", right: true, cell: func(_ *app, f v1.Flavor) string { return strconv.Itoa(f.MemoryMiB) + " MiB" }},
		{head: "DISK", right: true, cell: func(_ *app, f v1.Flavor) string { return strconv.Itoa(f.DiskGiB) + " GiB" }},
		{head: "STATE", state: true, cell: func(_ *app, f v1.Flavor) string {
			if f.Retired {
				return "retired"
			}
			return "active"
		}},
		{head: "ID", isWide: true, keep: true, cell: func(_ *app, f v1.Flavor) string { return string(f.ID) }},
		{head: "CREATED", isWide: true, cell: func(a *app, f v1.Flavor) string { return a.when(f.CreatedAt) }},
	},
}

var zoneListing = listing[v1.Zone]{
	noun: "zones", name: func(z v1.Zone) string { return z.Name },
	columns: []column[v1.Zone]{
		{head: "NAME", keep: true, cell: func(_ *app, z v1.Zone) string { return z.Name }},
		{head: "REGION", cell: func(_ *app, z v1.Zone) string { return z.Region }},
		{head: "AVAILABLE", state: true, cell: func(_ *app, z v1.Zone) string { return yesNo(z.Available) }},
		{head: "ID", isWide: true, keep: true, cell: func(_ *app, z v1.Zone) string { return string(z.ID) }},
		{head: "CAPABILITIES", isWide: true, cell: func(_ *app, z v1.Zone) string { return capabilityText(z.Capabilities) }},
	},
}

func capabilityText(c hcp.Capabilities) string {
	var can []string
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if c.Has(k) {
			can = append(can, string(k))
		}
	}
	return strings.Join(can, ",")
}

var opsZoneListing = listing[v1.OpsZone]{
	noun: "zones", name: func(z v1.OpsZone) string { return z.Name },
	columns: []column[v1.OpsZone]{
		{head: "NAME", keep: true, cell: func(_ *app, z v1.OpsZone) string { return z.Name }},
		{head: "REGION", cell: func(_ *app, z v1.OpsZone) string { return z.Region }},
		{head: "CLUSTERS", right: true, cell: func(_ *app, z v1.OpsZone) string { return strconv.Itoa(len(z.Members)) }},
		{head: "AGE", keep: true, cell: func(a *app, z v1.OpsZone) string { return a.when(z.CreatedAt) }},
		{head: "ID", isWide: true, keep: true, cell: func(_ *app, z v1.OpsZone) string { return string(z.ID) }},
		{head: "MEMBERS", isWide: true, keep: true, cell: func(_ *app, z v1.OpsZone) string { return memberText(z.Members) }},
	},
}

// memberText writes members as `zone create --cluster` takes them.
func memberText(members []hcp.ZoneCluster) string {
	var parts []string
	for _, m := range members {
		text := string(m.Cluster)
		if m.Pool != "" {
			text += ":" + m.Pool
		}
		if m.Weight != 0 {
			text += "=" + strconv.Itoa(m.Weight)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}
