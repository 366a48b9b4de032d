// Command hcpctl is the command line of HCP; all of it is in package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/lotuscloud/hcp/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], os.Environ(), cli.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
