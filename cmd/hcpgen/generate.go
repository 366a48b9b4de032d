package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lotuscloud/hcp/api"
	"github.com/lotuscloud/hcp/cli"
)

// generate returns every generated file by its path in the repository.
func generate() (map[string][]byte, error) {
	document, err := api.OpenAPI()
	if err != nil {
		return nil, fmt.Errorf("make the OpenAPI document: %w", err)
	}
	files := map[string][]byte{
		"api/openapi.json":  document,
		"docs/errors.md":    errorsPage(),
		"docs/lifecycle.md": lifecyclePage(),
		"docs/roles.md":     rolesPage(),

		"docs/operators/configuration.md": configurationPage(),
	}
	for folder, tree := range map[string]func(string) error{"docs/man": cli.GenManTree, "docs/cli": cli.GenMarkdownTree} {
		if err := addTree(files, folder, tree); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addTree runs a generator that writes a folder, and takes what it wrote.
func addTree(files map[string][]byte, folder string, tree func(string) error) error {
	dir, err := os.MkdirTemp("", "hcpgen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := tree(dir); err != nil {
		return fmt.Errorf("make %s: %w", folder, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		files[folder+"/"+e.Name()] = content
	}
	return nil
}

// existing lists the generated files that stand in the folders which hold nothing else.
func existing(root string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, pattern := range []string{"docs/man/hcpctl*.1", "docs/cli/hcpctl*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return nil, err
			}
			found[filepath.ToSlash(rel)] = true
		}
	}
	return found, nil
}
