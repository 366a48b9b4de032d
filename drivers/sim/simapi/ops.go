package simapi

import "slices"

// Op names an operation of the API, and what faults and counters are kept by.
type Op string

// Operations that change the world. The answer is TaskAnswer.
const (
	OpClone          Op = "clone"
	OpConfigure      Op = "configure"
	OpPowerOn        Op = "power_on"
	OpPowerOff       Op = "power_off"
	OpShutdown       Op = "shutdown"
	OpReset          Op = "reset"
	OpDelete         Op = "delete"
	OpResize         Op = "resize"
	OpSnapshot       Op = "snapshot"
	OpRevert         Op = "revert"
	OpDeleteSnapshot Op = "delete_snapshot"
	OpAttach         Op = "attach"
	OpDetach         Op = "detach"
	OpCreateVolume   Op = "create_volume"
	OpDeleteVolume   Op = "delete_volume"
	OpOpenConsole    Op = "open_console"
	OpCloseConsole   Op = "close_console"
	OpImportImage    Op = "import_image"
)

// Operations that only read, and the sessions.
const (
	OpGet     Op = "get"
	OpList    Op = "list"
	OpFind    Op = "find"
	OpTask    Op = "task"
	OpCluster Op = "cluster"
	OpLogin   Op = "login"
	OpLogout  Op = "logout"
)

var (
	mutating = []Op{OpClone, OpConfigure, OpPowerOn, OpPowerOff, OpShutdown, OpReset, OpDelete, OpResize, OpSnapshot,
		OpRevert, OpDeleteSnapshot, OpAttach, OpDetach, OpCreateVolume, OpDeleteVolume, OpOpenConsole, OpCloseConsole,
		OpImportImage}
	reading = []Op{OpGet, OpList, OpFind, OpTask, OpCluster, OpLogin, OpLogout}
)

// Ops lists every operation, those that change the world first.
func Ops() []Op { return slices.Concat(mutating, reading) }

// Mutating reports whether the operation changes the world.
func (o Op) Mutating() bool { return slices.Contains(mutating, o) }

// Known reports whether there is such an operation.
func (o Op) Known() bool { return o.Mutating() || slices.Contains(reading, o) }
