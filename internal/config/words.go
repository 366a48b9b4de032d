package config

import (
	"fmt"
	"io"
	"net"
	"slices"
)

// Print writes the effective configuration as hcp.yaml would have it, each key
// with what it means. There are no secrets in it: they live in files.
func Print(w io.Writer, c Config) error {
	for _, s := range Settings() {
		env := ""
		if s.Env() != "" {
			env = ", environment " + s.Env()
		}
		if _, err := fmt.Fprintf(w, "# %s\n# flag --%s%s\n%s: %q\n", s.Usage, s.Flag(), env, s.Key, s.get(&c)); err != nil {
			return err
		}
	}
	return nil
}

// Usage writes the flags with their present values.
func Usage(w io.Writer, c Config) {
	for _, s := range Settings() {
		value := s.get(&c)
		if value != "" {
			value = " (" + value + ")"
		}
		fmt.Fprintf(w, "  --%-30s %s%s\n", s.Flag(), s.Usage, value)
	}
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// didYouMean suggests the nearest of the known words, or nothing.
func didYouMean(word string, known []string) string {
	best, bestDistance := "", 4
	for _, k := range known {
		if d := distance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the edit distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next := min(row[j]+1, row[j-1]+1, diagonal+cost)
			diagonal, row[j] = row[j], next
		}
	}
	return row[len(b)]
}
