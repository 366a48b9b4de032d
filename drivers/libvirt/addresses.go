package libvirt

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/lotuscloud/hcp"
)

const (
	agentWithin  = 6 * time.Second  // one question to a guest; a silent agent takes libvirt five
	agentKnown   = 30 * time.Second // an answer is good for so long
	agentBreak   = 20 * time.Second // a silent agent is left alone, twice as long each time
	agentBreaks  = 4                // doublings at most
	agentsASweep = 8                // guests asked in one sweep; the others come next

	sourceAgent = 1
)

// leasesOf reads the leases of networks; one without leases has none, which is no error.
func leasesOf(ctx context.Context, h *host, networks []string) ([]golibvirt.NetworkDhcpLease, error) {
	var all []golibvirt.NetworkDhcpLease
	for _, name := range slices.Compact(slices.Sorted(slices.Values(networks))) {
		leases, err := call(ctx, h, func(lv *golibvirt.Libvirt) ([]golibvirt.NetworkDhcpLease, error) {
			net, err := lv.NetworkLookupByName(name)
			if err != nil {
				return nil, err
			}
			l, _, err := lv.NetworkGetDhcpLeases(net, nil, 1, 0)
			return l, err
		})
		if err != nil && libvirtCode(err) == 0 {
			return nil, err
		}
		all = append(all, leases...)
	}
	return all, nil
}

// leased are the machine's addresses of this boot. A lease outlives the boot that
// took it, so those that were there when the boot began do not count; a lease
// that was renewed since does.
func leased(f facts, leases []golibvirt.NetworkDhcpLease) []hcp.Address {
	var out []hcp.Address
	for _, l := range leases {
		if isOf(l, f) && l.Expirytime > f.leaseUntil {
			out = appendAddress(out, l.Ipaddr, "lease")
		}
	}
	return out
}

func isOf(l golibvirt.NetworkDhcpLease, f facts) bool {
	return len(l.Mac) == 1 && slices.Contains(f.macs, strings.ToLower(l.Mac[0]))
}

// noteBoot writes the boot element before a start.
func (d *Driver) noteBoot(ctx context.Context, p *place) error {
	f, err := d.factsOf(ctx, p.host, p.dom, fresh)
	if err != nil {
		return err
	}
	leases, err := leasesOf(ctx, p.host, f.networks)
	if err != nil {
		return err
	}
	p.host.agents.drop(p.dom.UUID)
	var until int64
	for _, l := range leases {
		if isOf(l, f) {
			until = max(until, l.Expirytime)
		}
	}
	if f.leaseUntil == until {
		return nil
	}
	p.host.facts.drop(p.dom.UUID)
	element := fmt.Sprintf(`<boot lease-until="%d"/>`, until)
	return run(ctx, p.host, func(lv *golibvirt.Libvirt) error {
		return lv.DomainSetMetadata(p.dom, metaElement, golibvirt.OptString{element}, golibvirt.OptString{"hcpboot"},
			golibvirt.OptString{bootNS}, golibvirt.DomainAffectConfig)
	})
}

// agentCache keeps what guests said last and who is not worth asking now.
type agentCache struct {
	mu   sync.Mutex
	byID map[golibvirt.UUID]agentWord
}

type agentWord struct {
	addresses []hcp.Address
	goodUntil time.Time
	silent    int // times in a row
	notBefore time.Time
	asking    bool // one question per guest
}

func newAgentCache() *agentCache { return &agentCache{byID: map[golibvirt.UUID]agentWord{}} }

func (c *agentCache) drop(id golibvirt.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// begin says whether to ask now; if not, known is what is known.
func (c *agentCache) begin(id golibvirt.UUID, now time.Time) (known []hcp.Address, ask bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.byID[id]
	if now.Before(w.goodUntil) {
		return w.addresses, false
	}
	if w.asking || now.Before(w.notBefore) {
		return nil, false
	}
	w.asking = true
	c.byID[id] = w
	return nil, true
}

func (c *agentCache) end(id golibvirt.UUID, now time.Time, addresses []hcp.Address, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := agentWord{}
	switch {
	case err != nil:
		w.silent = c.byID[id].silent + 1
		w.notBefore = now.Add(agentBreak << min(w.silent-1, agentBreaks))
		if w.silent == 1 { // it may be about to come up
			w.notBefore = now.Add(agentBreak / 10)
		}
	case len(addresses) > 0: // none yet is no answer to keep
		w.addresses, w.goodUntil = addresses, now.Add(agentKnown)
	}
	c.byID[id] = w
}

// askAgent asks the guest itself, at most one question at a time; nil: it did not
// say. A guest that does not answer is never an error of the machine.
func (d *Driver) askAgent(ctx context.Context, h *host, dom golibvirt.Domain) []hcp.Address {
	known, ask := h.agents.begin(dom.UUID, d.now())
	if !ask {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, agentWithin)
	defer cancel()
	ifaces, err := on(ctx, h.agent, func(lv *golibvirt.Libvirt) ([]golibvirt.DomainInterface, error) {
		return lv.DomainInterfaceAddresses(dom, sourceAgent, 0)
	})
	var out []hcp.Address
	for _, i := range ifaces {
		for _, a := range i.Addrs {
			out = appendAddress(out, a.Addr, "agent")
		}
	}
	h.agents.end(dom.UUID, d.now(), out, err)
	return out
}

type pendingAgent struct {
	index int
	dom   golibvirt.Domain
}

// askAgents asks several guests at once, within the limits of the agent connection.
func (d *Driver) askAgents(ctx context.Context, h *host, guests []pendingAgent) map[int][]hcp.Address {
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[int][]hcp.Address{}
	asked := 0
	for _, g := range guests {
		if asked >= agentsASweep {
			break
		}
		asked++
		wg.Go(func() {
			if a := d.askAgent(ctx, h, g.dom); len(a) > 0 {
				mu.Lock()
				out[g.index] = a
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return out
}

// appendAddress adds what others can reach: no loopback, no link-local.
func appendAddress(list []hcp.Address, ip, source string) []hcp.Address {
	a, err := netip.ParseAddr(ip)
	if err != nil || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return list
	}
	for _, have := range list {
		if have.IP == a.String() {
			return list
		}
	}
	return append(list, hcp.Address{IP: a.String(), Source: source})
}
