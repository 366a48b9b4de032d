package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/goccy/go-yaml"
)

// configFile is hcpctl's only state: the contexts and which one is in use.
type configFile struct {
	Current  string          `yaml:"current,omitempty" json:"current,omitempty"`
	Previous string          `yaml:"previous,omitempty" json:"previous,omitempty"`
	Contexts []contextConfig `yaml:"contexts,omitempty" json:"contexts"`
}

// contextConfig is a server, a project and the way to a token under one name.
type contextConfig struct {
	Name      string `yaml:"name"`
	Server    string `yaml:"server,omitempty"`
	Project   string `yaml:"project,omitempty"`
	Token     secret `yaml:"token,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	Sim       string `yaml:"sim,omitempty"`
}

// secret cannot print: only Reveal and the configuration file see it.
type secret string

func (s secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}
func (s secret) GoString() string             { return s.String() }
func (s secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }
func (s secret) reveal() string               { return string(s) }

func (c *configFile) find(name string) *contextConfig {
	for i := range c.Contexts {
		if c.Contexts[i].Name == name {
			return &c.Contexts[i]
		}
	}
	return nil
}

func (c *configFile) names() []string {
	var names []string
	for _, x := range c.Contexts {
		names = append(names, x.Name)
	}
	return names
}

// use makes name the current context and remembers the one before.
func (c *configFile) use(name string) {
	if c.Current != name {
		c.Previous, c.Current = c.Current, name
	}
}

func (c *configFile) put(x contextConfig) {
	if old := c.find(x.Name); old != nil {
		*old = x
		return
	}
	c.Contexts = append(c.Contexts, x)
	slices.SortFunc(c.Contexts, func(a, b contextConfig) int { return compareStrings(a.Name, b.Name) })
}

func (c *configFile) remove(name string) {
	c.Contexts = slices.DeleteFunc(c.Contexts, func(x contextConfig) bool { return x.Name == name })
	if c.Current == name {
		c.Current = ""
	}
	if c.Previous == name {
		c.Previous = ""
	}
}

func (c *configFile) rename(from, to string) {
	x := *c.find(from)
	c.Contexts = slices.DeleteFunc(c.Contexts, func(x contextConfig) bool { return x.Name == from })
	x.Name = to
	c.put(x)
	for _, p := range []*string{&c.Current, &c.Previous} {
		if *p == from {
			*p = to
		}
	}
}

// configPath is --config, HCP_CONFIG, or the user's configuration folder.
func (a *app) configPath() (string, error) {
	if a.global.config != "" {
		return a.global.config, nil
	}
	if p := a.env[envConfig]; p != "" {
		return p, nil
	}
	if dir := a.env["XDG_CONFIG_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "hcp", "config.yaml"), nil
	}
	switch home := a.env["HOME"]; {
	case runtime.GOOS == "windows" && a.env["APPDATA"] != "":
		return filepath.Join(a.env["APPDATA"], "hcp", "config.yaml"), nil
	case home == "":
		return "", usage("no_config_folder", "there is no home folder to keep the configuration in: set %s", envConfig)
	default:
		return filepath.Join(home, ".config", "hcp", "config.yaml"), nil
	}
}

// loadConfig reads the file; a file that is not there is an empty configuration.
func (a *app) loadConfig() (*configFile, error) {
	path, err := a.configPath()
	if err != nil {
		return &configFile{}, nil // without a home there is no configuration; keeping one says so
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(b)) == 0:
		return &configFile{}, nil
	case err != nil:
		return nil, usage("config_unreadable", "the configuration file cannot be read: %v", err)
	}
	var c configFile
	if err := yaml.UnmarshalWithOptions(b, &c, yaml.Strict()); err != nil {
		return nil, usage("config_invalid", "the configuration file %s is not valid: %s", path, firstLine(yaml.FormatError(err, false, false)))
	}
	a.warnIfReadableByOthers(path, &c)
	return &c, nil
}

func (a *app) warnIfReadableByOthers(path string, c *configFile) {
	holdsToken := slices.ContainsFunc(c.Contexts, func(x contextConfig) bool { return x.Token != "" })
	info, err := os.Stat(path)
	if err != nil || !holdsToken || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return
	}
	a.warn(fmt.Sprintf("%s holds a token and others can read it; protect it with: chmod 600 %s", path, shellQuote(path)))
}

// saveConfig replaces the file whole, so that a crash leaves the old one.
func (a *app) saveConfig(c *configFile) error {
	path, err := a.configPath()
	if err != nil {
		return err
	}
	b, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return cannotSave(err)
	}
	tmp, err := os.CreateTemp(dir, ".config-*") // made with mode 0600
	if err != nil {
		return cannotSave(err)
	}
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return cannotSave(err)
	}
	return nil
}

func cannotSave(err error) error {
	return usage("config_unwritable", "the configuration file cannot be written: %v", err)
}
