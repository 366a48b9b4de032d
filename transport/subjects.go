package transport

// SubjectNode is where a node answers requests of one kind: one subject per node
// and kind, never one per actor.
func SubjectNode(node, kind string) string { return "hcp.node." + node + "." + kind }

// KindCommand is the kind of requests that carry an hcp.Command.
const KindCommand = "command"
