package cli

import (
	"slices"
	"strings"
)

// environment is the process's variables, as handed to Main.
type environment map[string]string

func newEnvironment(env []string) environment {
	m := make(environment, len(env))
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// The variables of hcpctl.
const (
	envServer    = "HCP_SERVER"
	envToken     = "HCP_TOKEN"
	envTokenFile = "HCP_TOKEN_FILE"
	envProject   = "HCP_PROJECT"
	envContext   = "HCP_CONTEXT"
	envConfig    = "HCP_CONFIG"
	envSim       = "HCP_SIM"
	envOutput    = "HCP_OUTPUT"
	envProgress  = "HCP_PROGRESS"
)

var clientVariables = []string{envServer, envToken, envTokenFile, envProject, envContext, envConfig, envSim, envOutput, envProgress}

// maxTypos is the edit distance up to which an unknown variable of ours is
// taken for a misspelt one. Others may be of hcpd or of a test: hcpctl does not
// know them and says nothing.
const maxTypos = 3

// misspelt lists variables that look like ours and are not, with the nearest name.
func (e environment) misspelt() (warnings []string) {
	for k := range e {
		if !strings.HasPrefix(strings.ToUpper(k), "HCP") || slices.Contains(clientVariables, k) || slices.Contains(daemonVariables, k) {
			continue
		}
		if near := nearest(strings.ToUpper(k), clientVariables, maxTypos); near != "" {
			warnings = append(warnings, "the variable "+k+" is not known and was ignored; did you mean "+near+"?")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// daemonVariables are names of hcpd and of the tests that are near to ours by accident.
var daemonVariables = []string{"HCP_STORE", "HCP_DEV", "HCP_SIM_URL", "HCP_SIM_LISTEN", "HCP_LISTEN", "HCP_DATA", "HCP_READY", "HCP_NATS", "HCP_OPS_TOKEN", "HCP_NODE"}

// nearest is the candidate with the least edit distance, "" if none is within limit.
func nearest(s string, candidates []string, limit int) string {
	best, found := limit+1, ""
	for _, c := range candidates {
		if d := editDistance(s, c); d < best {
			best, found = d, c
		}
	}
	return found
}

// editDistance is Levenshtein's, a swap of neighbours counting once.
func editDistance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
