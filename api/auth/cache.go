package auth

import (
	"sync"
	"time"
)

// tokenCache remembers verified tokens until they expire: checking a signature
// costs more than all the rest of a read.
type tokenCache struct {
	max int
	mu  sync.RWMutex
	ids map[string]Identity
}

func newTokenCache(size int) *tokenCache {
	return &tokenCache{max: size, ids: make(map[string]Identity)}
}

func (c *tokenCache) get(token string, now time.Time) (Identity, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	id, ok := c.ids[token]
	return id, ok && now.Before(id.ExpiresAt.Add(Leeway))
}

// put makes room by dropping what has expired, then anything.
func (c *tokenCache) put(token string, id Identity, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) >= c.max {
		for t, old := range c.ids {
			if !now.Before(old.ExpiresAt.Add(Leeway)) {
				delete(c.ids, t)
			}
		}
		for t := range c.ids {
			if len(c.ids) < c.max/2 {
				break
			}
			delete(c.ids, t)
		}
	}
	c.ids[token] = id
}
