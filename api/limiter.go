package api

import (
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lotuscloud/hcp"
)

// limiter is one token bucket a principal.
type limiter struct {
	rate   float64
	burst  int
	policy string
	now    func() time.Time

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

const maxBuckets = 10000

func newLimiter(l Limits, now func() time.Time) *limiter {
	window := max(1, int(math.Ceil(float64(l.Burst)/l.Rate)))
	return &limiter{rate: l.Rate, burst: l.Burst, now: now, buckets: map[string]*rate.Limiter{},
		policy: `"principal";q=` + strconv.Itoa(l.Burst) + `;w=` + strconv.Itoa(window)}
}

// take counts the call and tells the caller what is left.
func (l *limiter) take(c *call) error {
	now := l.now()
	b := l.bucket(string(c.identity.Scope)+"/"+c.identity.Subject, now)
	allowed := b.AllowN(now, 1)
	left := math.Max(0, math.Floor(b.TokensAt(now)))
	full := int(math.Ceil((float64(l.burst) - left) / l.rate))
	h := &c.http.Response().Header
	h.Set("RateLimit-Policy", l.policy)
	h.Set("RateLimit", `"principal";r=`+strconv.Itoa(int(left))+`;t=`+strconv.Itoa(full))
	if allowed {
		return nil
	}
	wait := time.Duration(math.Ceil(1/l.rate)) * time.Second
	return hcp.Errorf(hcp.CodeRateLimited, "rate_limited", "the caller makes too many calls").WithRetryAfter(wait)
}

func (l *limiter) bucket(key string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= maxBuckets { // a full bucket is as good as none
		for k, b := range l.buckets {
			if b.TokensAt(now) >= float64(l.burst) {
				delete(l.buckets, k)
			}
		}
		for k := range l.buckets {
			if len(l.buckets) < maxBuckets {
				break
			}
			delete(l.buckets, k)
		}
	}
	b := rate.NewLimiter(rate.Limit(l.rate), l.burst)
	l.buckets[key] = b
	return b
}
