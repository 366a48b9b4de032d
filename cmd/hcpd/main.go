// Command hcpd is the control plane. It only wires: what it starts, and in which
// order, stands in serve.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/adrg/xdg"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/internal/config"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(exit(err, os.Stderr))
}

// usageError is wrong input on the command line, in a file or in the environment.
type usageError struct{ error }

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "sim":
			return runSim(ctx, args[1:], stdout, stderr)
		case "version", "--version":
			_, err := fmt.Fprintln(stdout, "hcpd", version)
			return err
		case "help":
			args = []string{"--help"}
		case "config":
			if len(args) < 2 || args[1] != "print" {
				return usageError{errors.New("the command is: hcpd config print [flags]")}
			}
			cfg, err := load(args[2:], environ, stderr)
			if err != nil {
				return err
			}
			return config.Print(stdout, cfg)
		}
	}
	cfg, err := load(args, environ, stderr)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return nil
	}
	if err != nil {
		return err
	}
	return serve(ctx, cfg, stdout, stderr)
}

func load(args, environ []string, stderr io.Writer) (config.Config, error) {
	defaults := config.Default(filepath.Join(xdg.DataHome, "hcp"))
	cfg, err := config.Load(defaults, args, environ, func(w string) { fmt.Fprintln(stderr, "hcpd: warning:", w) })
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return cfg, usageError{err}
	}
	return cfg, err
}

func usage(w io.Writer) {
	fmt.Fprint(w, `hcpd is the compute control plane of LotusCloud.

  hcpd [flags]               run one node; without flags on embedded defaults
  hcpd --dev                 the same with a world to try: tokens, projects, a simulated hypervisor
  hcpd sim [flags]           run a simulated hypervisor as a process of its own
  hcpd config print [flags]  show the effective configuration and what each key means
  hcpd version

Flags, with what holds now; each is also a key of the file and an environment variable:
  --config FILE                    read hcp.yaml from here
`)
	config.Usage(w, config.Default(filepath.Join(xdg.DataHome, "hcp")))
}

// exit turns an error into what a person reads, and the exit code.
func exit(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, context.Canceled) {
		return hcp.ExitOK
	}
	if u, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(stderr, "hcpd:", u.error)
		return hcp.ExitUsage
	}
	if e, ok := errors.AsType[*hcp.Error](err); ok {
		fmt.Fprintln(stderr, "hcpd:", e.Message)
		if e.Hint != "" {
			fmt.Fprintln(stderr, "Try: ", e.Hint)
		}
		if e.Err != nil {
			fmt.Fprintln(stderr, "Cause:", e.Err)
		}
		return e.Code.Entry().Exit
	}
	fmt.Fprintln(stderr, "hcpd:", err)
	return hcp.ExitFailed
}
