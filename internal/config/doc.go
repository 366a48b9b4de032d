// Package config is hcpd's configuration: one table of settings from which the
// flags, the environment variables, the keys of hcp.yaml, `hcpd config print` and
// the documentation come. A value is wrong with a sentence, an unknown key with a
// suggestion. Start reading at settings.
package config
