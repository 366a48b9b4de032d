package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Config is the effective configuration.
type Config struct {
	Data        string
	Listen      string
	AdminListen string
	Node        string
	Dev         bool
	ReadyFile   string
	Libvirt     string
	Sim         string
	TLSCert     string
	TLSKey      string
	KeyFile     string

	LogLevel  string
	LogFormat string

	JobStepTimeout time.Duration
	JobTimeout     time.Duration
	UndoTimeout    time.Duration
	UndoTries      int
	JobQueue       int

	CallTimeout       time.Duration
	ProbeInterval     time.Duration
	InventoryInterval time.Duration
	Concurrency       int

	ActorIdle time.Duration
	ActorScan time.Duration

	APIRate      float64
	APIBurst     int
	APIBodyLimit int
}

// Setting is one line of the configuration.
type Setting struct {
	Key   string // in hcp.yaml; dots nest
	Usage string
	// IsSwitch settings are true when their flag stands alone.
	IsSwitch bool
	// hasNoEnv settings are not read from the environment: their variable is somebody else's.
	hasNoEnv bool
	set      func(c *Config, v string) error
	get      func(c *Config) string
}

// Flag is the setting's command line flag: --jobs.step-timeout.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Env is the setting's environment variable: HCP_JOBS__STEP_TIMEOUT; empty when it
// has none.
func (s Setting) Env() string {
	if s.hasNoEnv {
		return ""
	}
	return "HCP_" + strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(s.Key, ".", "__"), "-", "_"))
}

// Value is what c has for this setting, as text.
func (s Setting) Value(c Config) string { return s.get(&c) }

// Settings is the whole table, in the order of the documentation.
func Settings() []Setting {
	text := func(key, usage string, at func(*Config) *string) Setting {
		return Setting{Key: key, Usage: usage, set: func(c *Config, v string) error { *at(c) = v; return nil },
			get: func(c *Config) string { return *at(c) }}
	}
	flagOnly := func(s Setting) Setting { s.hasNoEnv = true; return s }
	address := func(key, usage string, at func(*Config) *string) Setting {
		s := text(key, usage, at)
		s.set = func(c *Config, v string) error {
			if _, port, err := net.SplitHostPort(v); err != nil || !isPort(port) {
				return fmt.Errorf("want host:port with a port from 0 to 65535, for example 127.0.0.1:8080")
			}
			*at(c) = v
			return nil
		}
		return s
	}
	choice := func(key, usage string, at func(*Config) *string, words ...string) Setting {
		s := text(key, usage+" ("+strings.Join(words, ", ")+")", at)
		s.set = func(c *Config, v string) error {
			for _, w := range words {
				if v == w {
					*at(c) = v
					return nil
				}
			}
			return fmt.Errorf("want one of %s", strings.Join(words, ", "))
		}
		return s
	}
	period := func(key, usage string, at func(*Config) *time.Duration) Setting {
		return Setting{Key: key, Usage: usage, get: func(c *Config) string { return at(c).String() },
			set: func(c *Config, v string) error {
				d, err := time.ParseDuration(v)
				if err != nil || d <= 0 {
					return fmt.Errorf("want a duration above zero with its unit, for example 30s, 5m or 2h")
				}
				*at(c) = d
				return nil
			}}
	}
	count := func(key, usage string, at func(*Config) *int) Setting {
		return Setting{Key: key, Usage: usage, get: func(c *Config) string { return strconv.Itoa(*at(c)) },
			set: func(c *Config, v string) error {
				n, err := strconv.Atoi(v)
				if err != nil || n <= 0 {
					return fmt.Errorf("want a whole number above zero")
				}
				*at(c) = n
				return nil
			}}
	}
	return []Setting{
		text("data", "folder of the database, the key file and all else that is kept", func(c *Config) *string { return &c.Data }),
		address("listen", "address of the API; loopback unless TLS is set; port 0 picks a free one", func(c *Config) *string { return &c.Listen }),
		address("admin-listen", "address of /livez, /readyz and /metrics; loopback only", func(c *Config) *string { return &c.AdminListen }),
		text("node", "stable name of this node", func(c *Config) *string { return &c.Node }),
		{Key: "dev", Usage: "add a world to try: projects, tokens, a simulated hypervisor; loopback only", IsSwitch: true,
			get: func(c *Config) string { return strconv.FormatBool(c.Dev) },
			set: func(c *Config, v string) error {
				b, err := strconv.ParseBool(v)
				if err != nil {
					return fmt.Errorf("want true or false")
				}
				c.Dev = b
				return nil
			}},
		text("ready-file", "write addresses and, with --dev, tokens to this file once hcpd serves", func(c *Config) *string { return &c.ReadyFile }),
		text("libvirt", "with --dev: also register this libvirt, for example qemu:///system", func(c *Config) *string { return &c.Libvirt }),
		// HCP_SIM is hcpctl's: what it names is not meant for a hcpd of the same shell.
		flagOnly(text("sim", "with --dev: use the simulated hypervisor at this URL instead of one in the process", func(c *Config) *string { return &c.Sim })),
		text("tls.cert", "certificate file of the API", func(c *Config) *string { return &c.TLSCert }),
		text("tls.key", "key file of the API's certificate", func(c *Config) *string { return &c.TLSKey }),
		text("key-file", "file of the key that seals secrets; default: hcp.key in the data folder", func(c *Config) *string { return &c.KeyFile }),
		choice("log.level", "least level that is logged", func(c *Config) *string { return &c.LogLevel }, "debug", "info", "warn", "error"),
		choice("log.format", "form of log lines", func(c *Config) *string { return &c.LogFormat }, "auto", "text", "json"),
		period("jobs.step_timeout", "how long one step of a job may take", func(c *Config) *time.Duration { return &c.JobStepTimeout }),
		period("jobs.job_timeout", "how long a job may take", func(c *Config) *time.Duration { return &c.JobTimeout }),
		period("jobs.undo_timeout", "how long an undo is tried", func(c *Config) *time.Duration { return &c.UndoTimeout }),
		count("jobs.undo_tries", "how often an undo is tried", func(c *Config) *int { return &c.UndoTries }),
		count("jobs.queue", "how many jobs may wait on one VM", func(c *Config) *int { return &c.JobQueue }),
		period("provider.call_timeout", "how long one call to a hypervisor may take", func(c *Config) *time.Duration { return &c.CallTimeout }),
		period("provider.probe_interval", "how often a cluster's health is looked at", func(c *Config) *time.Duration { return &c.ProbeInterval }),
		period("provider.inventory_interval", "how often all machines of a cluster are looked at", func(c *Config) *time.Duration { return &c.InventoryInterval }),
		count("provider.concurrency", "how much work runs on a cluster at once, unless its option concurrency says otherwise", func(c *Config) *int { return &c.Concurrency }),
		period("actors.idle", "how long a VM without work stays in memory", func(c *Config) *time.Duration { return &c.ActorIdle }),
		period("actors.scan", "how often due jobs are looked for", func(c *Config) *time.Duration { return &c.ActorScan }),
		{Key: "api.rate", Usage: "calls a second that one principal may make",
			get: func(c *Config) string { return strconv.FormatFloat(c.APIRate, 'g', -1, 64) },
			set: func(c *Config, v string) error {
				f, err := strconv.ParseFloat(v, 64)
				if err != nil || f <= 0 {
					return fmt.Errorf("want a number above zero")
				}
				c.APIRate = f
				return nil
			}},
		count("api.burst", "calls that one principal may make at once", func(c *Config) *int { return &c.APIBurst }),
		count("api.body_limit", "largest JSON body in bytes", func(c *Config) *int { return &c.APIBodyLimit }),
	}
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n <= 65535
}

// Default is what holds without file, environment and flags.
func Default(dataHome string) Config {
	return Config{
		Data: dataHome, Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:8081", Node: "hcp-1",
		LogLevel: "info", LogFormat: "auto",
		JobStepTimeout: 30 * time.Minute, JobTimeout: 2 * time.Hour, UndoTimeout: time.Hour, UndoTries: 10, JobQueue: 8,
		CallTimeout: 30 * time.Second, ProbeInterval: 10 * time.Second, InventoryInterval: 10 * time.Second, Concurrency: 8,
		ActorIdle: 5 * time.Minute, ActorScan: 5 * time.Second,
		APIRate: 5000, APIBurst: 10000, APIBodyLimit: 1 << 20,
	}
}
