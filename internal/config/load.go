package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// clientEnv are HCP_* variables of hcpctl and of HCP's own tests.
var clientEnv = []string{"HCP_SERVER", "HCP_TOKEN", "HCP_TOKEN_FILE", "HCP_PROJECT", "HCP_CONTEXT", "HCP_CONFIG", "HCP_SIM", "HCP_BENCH",
	"HCP_REQUIRE_LIBVIRT", "HCP_SKIP_E2E", "HCPD_READY"}

// Load lays file, environment and flags over the defaults, in this order: the
// later wins. warn hears of things that are odd but not wrong. The error is one
// sentence that names the place, what was wrong and what is right; flag.ErrHelp
// when help was asked for.
func Load(defaults Config, args, environ []string, warn func(string)) (Config, error) {
	c := defaults
	settings := Settings()
	flags := flag.NewFlagSet("hcpd", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("config", "", "")
	given := map[string]string{}
	for _, s := range settings {
		record := func(v string) error { given[s.Key] = v; return nil }
		if s.IsSwitch {
			flags.BoolFunc(s.Flag(), s.Usage, record)
		} else {
			flags.Func(s.Flag(), s.Usage, record)
		}
	}
	if err := flags.Parse(args); err != nil {
		return c, flagError(err, settings)
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("hcpd knows no command %q; see hcpd --help", flags.Arg(0))
	}
	env := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "HCP_") {
			env[name] = value
		}
	}
	if *file == "" {
		*file = env["HCP_CONFIG_FILE"]
		delete(env, "HCP_CONFIG_FILE")
	}
	if *file != "" {
		if err := c.fromFile(*file, settings); err != nil {
			return c, err
		}
	}
	for _, s := range settings {
		if v, ok := env[s.Env()]; ok && s.Env() != "" {
			if err := s.set(&c, v); err != nil {
				return c, fmt.Errorf("the environment variable %s is wrong: %w", s.Env(), err)
			}
			delete(env, s.Env())
		}
	}
	if err := unknownEnv(env, settings, warn); err != nil {
		return c, err
	}
	for _, s := range settings {
		if v, ok := given[s.Key]; ok {
			if err := s.set(&c, v); err != nil {
				return c, fmt.Errorf("the flag --%s is wrong: %w", s.Flag(), err)
			}
		}
	}
	return c, c.check()
}

func (c *Config) fromFile(path string, settings []Setting) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the configuration file %s does not exist", path)
		}
		return fmt.Errorf("the configuration file cannot be read: %w", err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(raw, &tree); err != nil {
		return fmt.Errorf("the configuration file %s is not valid YAML: %s", path, yaml.FormatError(err, false, true))
	}
	flat := map[string]string{}
	flatten("", tree, flat)
	byKey := map[string]Setting{}
	keys := []string{}
	for _, s := range settings {
		byKey[s.Key] = s
		keys = append(keys, s.Key)
	}
	for _, key := range sortedKeys(flat) {
		s, ok := byKey[key]
		if !ok {
			return fmt.Errorf("the configuration file %s has the unknown key %q%s", path, key, didYouMean(key, keys))
		}
		if err := s.set(c, flat[key]); err != nil {
			return fmt.Errorf("the key %q in %s is wrong: %w", key, path, err)
		}
	}
	return nil
}

func flatten(prefix string, tree map[string]any, into map[string]string) {
	for k, v := range tree {
		if sub, ok := v.(map[string]any); ok {
			flatten(prefix+k+".", sub, into)
			continue
		}
		into[prefix+k] = fmt.Sprint(v)
	}
}

func flagError(err error, settings []Setting) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		known := []string{"config"}
		for _, s := range settings {
			known = append(known, s.Flag())
		}
		name = strings.TrimLeft(name, "-")
		return fmt.Errorf("hcpd knows no flag --%s%s", name, didYouMean(name, known))
	}
	return fmt.Errorf("%w; see hcpd --help", err)
}

// unknownEnv refuses what looks like a setting misspelt, and mentions the rest.
func unknownEnv(env map[string]string, settings []Setting, warn func(string)) error {
	known := []string{}
	for _, s := range settings {
		if s.Env() != "" {
			known = append(known, s.Env())
		}
	}
	for _, name := range sortedKeys(env) {
		if slices.Contains(clientEnv, name) {
			continue
		}
		if hint := didYouMean(name, known); hint != "" {
			return fmt.Errorf("the environment variable %s is unknown%s", name, hint)
		}
		warn("the environment variable " + name + " is not known to hcpd")
	}
	return nil
}

func (c *Config) check() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("tls.cert and tls.key belong together: one of them is missing")
	case !isLoopback(c.Listen) && c.TLSCert == "":
		return fmt.Errorf("listen %s is not loopback: set tls.cert and tls.key, or listen on 127.0.0.1", c.Listen)
	case !isLoopback(c.AdminListen):
		return fmt.Errorf("admin-listen %s is not loopback: /metrics has no authentication", c.AdminListen)
	case c.Dev && !isLoopback(c.Listen):
		return errors.New("--dev hands out tokens and listens on loopback only")
	case (c.Libvirt != "" || c.Sim != "") && !c.Dev:
		return errors.New("--libvirt and --sim belong to --dev; without it register clusters with hcpctl cluster register")
	case strings.TrimSpace(c.Node) == "" || strings.ContainsAny(c.Node, ".*> \t"):
		return errors.New("node must be a name without dots, blanks and wildcards")
	case c.Data == "":
		return errors.New("data is empty: name a folder")
	}
	return nil
}
