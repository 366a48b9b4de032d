// Command hcpgen writes everything in the repository that is generated from code:
// the OpenAPI document, the man pages and the reference of hcpctl, and the tables
// of errors, lifecycle, roles and settings. A test fails when any of it is stale.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "hcpgen:", err)
		os.Exit(1)
	}
}

// write puts every generated file below root, and removes those of commands that
// are gone.
func write(root string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	stale, err := existing(root)
	if err != nil {
		return err
	}
	for path, content := range files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, content, 0o644); err != nil {
			return err
		}
		delete(stale, path)
	}
	for path := range stale {
		if err := os.Remove(filepath.Join(root, path)); err != nil {
			return err
		}
	}
	return nil
}
