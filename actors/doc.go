// Package actors is the small seam between HCP and its actor runtime: spawn,
// tell, passivate. Only this package knows protoactor. An actor of HCP is a
// Behaviour: one message at a time, never blocking; whatever waits runs outside
// and comes back as a message.
//
// Of the runtime we use mailboxes and nothing else. Not used, on purpose:
// ReceiveTimeout (it races and loses requests), Stop on a busy actor (it drops
// the queue in silence), Stash (it reverses the order), futures on the server
// path (replies are functions in the messages), cluster and persistence.
//
// Start reading at Registry.
package actors
