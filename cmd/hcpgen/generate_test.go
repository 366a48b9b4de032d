package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What is generated and committed is what the code says now.
func TestGeneratedFilesAreNotStale(t *testing.T) {
	const root = "../.."
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	there, err := existing(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		have, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is stale; run make gen", path)
		}
		delete(there, path)
	}
	for path := range there {
		t.Errorf("%s is of a command that is gone; run make gen", path)
	}
}
