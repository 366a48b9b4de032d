package node

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/lotuscloud/hcp"
)

func (b *bundle) put(change func(*hcp.Cluster)) error {
	st, err := b.store.LoadCluster(b.t.Context(), string(b.id))
	b.must(err)
	c := st.Cluster
	c.Options = maps.Clone(c.Options)
	if c.Options == nil {
		c.Options = map[string]string{}
	}
	change(&c)
	_, err = b.ask(hcp.Command{Verb: hcp.VerbClusterPut, Put: &hcp.PutCluster{Cluster: c}})
	return err
}

func TestAClusterTakesTheOptionConcurrency(t *testing.T) {
	// The option is HCP's own, and documented. It was handed to the driver, which knows no
	// such option: the cluster went down for good.
	b := newBundle(t)
	b.must(b.put(func(c *hcp.Cluster) { c.Options["concurrency"] = "4" }))
	if job := b.final(b.create("web").Job); job.State != hcp.JobSucceeded {
		t.Errorf("%s; error %+v", stepsOf(job), job.Error)
	}
}

func TestWhatNoDriverCanBeMadeOfIsRefused(t *testing.T) {
	// A slip in an option was stored, and took a working cluster down.
	b := newBundle(t)
	for name, change := range map[string]func(*hcp.Cluster){
		"unknown option":  func(c *hcp.Cluster) { c.Options["nope"] = "1" },
		"bad concurrency": func(c *hcp.Cluster) { c.Options["concurrency"] = "many" },
		"bad endpoint":    func(c *hcp.Cluster) { c.Endpoint = "::" },
	} {
		if err := b.put(change); !hcp.IsCode(err, hcp.CodeInvalidRequest) || len(hcp.AsError(err).Fields) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if job := b.final(b.create("web").Job); job.State != hcp.JobSucceeded {
		t.Errorf("%s; error %+v", stepsOf(job), job.Error)
	}
}

func TestAnUpdateOfAClusterLeavesMaintenanceAlone(t *testing.T) {
	// A caller that had read the cluster before it went to maintenance took it back with
	// any other change.
	b := newBundle(t)
	b.do(hcp.Command{Verb: hcp.VerbClusterMaintenance, Enable: true})
	b.must(b.put(func(c *hcp.Cluster) { c.Maintenance = false }))
	st, err := b.store.LoadCluster(t.Context(), string(b.id))
	b.must(err)
	if !st.Cluster.Maintenance {
		t.Error("the cluster is no longer in maintenance")
	}
}

func TestNoVMIsLeftOnAClusterThatIsDeleted(t *testing.T) {
	// Whether VMs live on the cluster was asked before its end was stored: a create in
	// between was accepted, and its VM could be neither made nor deleted.
	b := newBundle(t)
	for round := range 5 {
		var all sync.WaitGroup
		accepted := make([]hcp.Answer, 8)
		for i := range accepted {
			all.Go(func() {
				v := b.newVM(fmt.Sprintf("web-%d-%d", round, i))
				accepted[i], _ = b.ask(hcp.Command{Verb: hcp.VerbCreate, VM: v.ID, Create: &hcp.CreateVM{VM: v, Claim: v.Flavor.Sizes()}})
			})
		}
		var err error
		all.Go(func() { _, err = b.ask(hcp.Command{Verb: hcp.VerbClusterDelete}) })
		all.Wait()
		for _, a := range accepted {
			if a.Job == "" {
				continue
			}
			if err == nil {
				t.Fatal("a create was accepted and its cluster deleted")
			}
			b.final(b.do(hcp.Command{Verb: hcp.VerbDelete, VM: a.VM}).Job)
		}
		if err == nil {
			return
		}
		b.eventually("the cluster has room again", func() bool {
			room, err := b.store.ClusterCapacity(b.t.Context())
			return err == nil && room[b.id].Limit.VCPUs > 0
		})
	}
	b.do(hcp.Command{Verb: hcp.VerbClusterDelete})
	if _, err := b.ask(hcp.Command{Verb: hcp.VerbClusterProbe}); !hcp.IsCode(err, hcp.CodeNotFound) {
		t.Errorf("a deleted cluster: %v", err)
	}
}
