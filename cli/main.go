package cli

import (
	"context"
	"io"
	"os"

	"github.com/lotuscloud/hcp/internal/clock"
)

// Stdio are the three streams of the process.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Main runs one command and returns the exit code. args are without the program
// name, env as os.Environ gives it. The end of ctx is an interrupt: whoever
// waits for a job detaches from it, the job goes on.
func Main(ctx context.Context, args, env []string, stdio Stdio) int {
	environ := newEnvironment(env)
	p := program{clock: clock.Real(), term: detectTerminal(stdio, environ), env: environ, io: stdio}
	return p.run(ctx, args)
}

// program is what a run gets from its process; tests make their own.
type program struct {
	clock clock.Clock
	term  terminal
	env   environment
	io    Stdio
}

func (p program) run(ctx context.Context, args []string) int {
	p.io.In = interruptible{ctx, p.io.In}
	a := newApp(p)
	a.prescan(args)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(p.io.In)
	root.SetOut(p.io.Out)
	root.SetErr(p.io.Err)
	err := root.ExecuteContext(ctx)
	return a.finish(ctx, err)
}

// readFile reads a file, or standard input for "-".
func (a *app) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.io.In)
	}
	return os.ReadFile(name)
}
