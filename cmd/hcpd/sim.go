package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/lotuscloud/hcp/drivers/sim"
)

// runSim is `hcpd sim`: the simulated hypervisor as a process of its own.
func runSim(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("hcpd sim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	listen := flags.String("listen", "127.0.0.1:9000", "address; port 0 picks a free one")
	data := flags.String("data", "", "folder that keeps the world; empty keeps it in memory")
	ready := flags.String("ready-file", "", "write the URL here once the sim answers")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stdout, "hcpd sim runs a simulated hypervisor; register its URL as a cluster with driver sim.")
			flags.SetOutput(stdout)
			flags.PrintDefaults()
			return nil
		}
		return usageError{fmt.Errorf("%w; see hcpd sim --help", err)}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("hcpd sim takes no argument %q", flags.Arg(0))}
	}
	cfg := sim.ServeConfig{Listen: *listen, Ready: func(url string) {
		fmt.Fprintln(stdout, url)
		if *ready != "" {
			if err := writeFile(*ready, []byte(url+"\n")); err != nil {
				fmt.Fprintln(stderr, "hcpd sim: the ready file cannot be written:", err)
			}
		}
	}}
	cfg.Data = *data
	cfg.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return sim.Serve(ctx, cfg)
}

// writeFile puts the whole content there or nothing, readable by its owner only.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o600), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
