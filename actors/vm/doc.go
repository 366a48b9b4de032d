// Package vm is the actor that owns one virtual machine. It is the only writer
// of that machine's rows. It never talks HTTP and never blocks its mailbox:
// provider calls run in the workers of the cluster's provider actor and come
// back as messages.
//
// What to do is decided by pure functions (Core.Accept, Core.Advance,
// Core.Resume ...) that take a State, a message and a time and return a Decision:
// the state after, what to commit, what to answer, what to run next. The Actor
// performs it. Start reading at Decision, then Accept, then Actor.Receive.
package vm
