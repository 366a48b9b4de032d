package hcp

// Capability is something a cluster may or may not be able to do. Tenants see
// the capabilities of a zone; a verb that needs one is refused before a job is
// made when it is absent.
type Capability string

const (
	CapReboot         Capability = "reboot"          // a provable restart; without it reboot is stop and start
	CapWatch          Capability = "watch"           // pushes changes
	CapConsole        Capability = "console"         // opens a screen
	CapSnapshot       Capability = "snapshot"        //
	CapResize         Capability = "resize"          //
	CapSuspend        Capability = "suspend"         //
	CapAdopt          Capability = "adopt"           // can take over a machine it did not make
	CapImageImport    Capability = "image_import"    // can bring an image file to the cluster
	CapDisks          Capability = "disks"           // extra disks
	CapPinHost        Capability = "pin_host"        // can be told the host
	CapAntiAffinity   Capability = "anti_affinity"   //
	CapUEFI           Capability = "uefi"            //
	CapGuestAddresses Capability = "guest_addresses" // tells the guest's addresses
)

// CapabilityState says that a cluster has a capability, or why not.
type CapabilityState struct {
	Supported bool   `json:"supported"`
	Reason    string `json:"reason,omitempty"` // why not, for people
}

// Capabilities of a cluster; an absent key is not supported.
type Capabilities map[Capability]CapabilityState

// Has reports whether the capability is supported.
func (c Capabilities) Has(k Capability) bool { return c[k].Supported }
