package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// docDate stands in every generated page, so that the same code gives the same bytes.
var docDate = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// docRoot is the command tree for documentation: no server, no environment.
func docRoot() *cobra.Command {
	root := newApp(program{env: environment{}, io: Stdio{Out: io.Discard, Err: io.Discard}}).root()
	root.DisableAutoGenTag = true
	return root
}

// GenManTree writes a man page for each command into dir, which it makes. Pages
// of commands that are gone are removed.
func GenManTree(dir string) error {
	if err := emptyFolder(dir, "hcpctl*.1"); err != nil {
		return err
	}
	header := &doc.GenManHeader{Title: "HCPCTL", Section: "1", Date: &docDate, Source: "HCP", Manual: "HCP manual"}
	if err := doc.GenManTree(docRoot(), header, dir); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	return nil
}

// GenMarkdownTree writes the command reference, a page for each command, into dir.
func GenMarkdownTree(dir string) error {
	if err := emptyFolder(dir, "hcpctl*.md"); err != nil {
		return err
	}
	if err := doc.GenMarkdownTree(docRoot(), dir); err != nil {
		return fmt.Errorf("write the command reference: %w", err)
	}
	return nil
}

func emptyFolder(dir, pattern string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}
