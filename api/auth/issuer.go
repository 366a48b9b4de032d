package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// Leeway is how far clocks of issuer and verifier may differ.
const Leeway = 30 * time.Second

// MaxTTL is the longest life of a token.
const MaxTTL = 365 * 24 * time.Hour

const (
	algorithm   = "EdDSA"
	keyPurpose  = "issuer/ed25519"
	keyContext  = "ring/issuer/ed25519"
	maxTokenLen = 8 << 10
)

// Config names the issuer in its tokens.
type Config struct {
	Issuer   string // iss; "hcp" when empty
	Audience string // aud; "hcp" when empty
}

// Issuer makes and verifies HCP's own tokens. Its key is made once, sealed, and
// kept in the store, so that every node has the same.
type Issuer struct {
	cfg    Config
	key    ed25519.PrivateKey
	kid    string
	now    func() time.Time
	parser *jwt.Parser
	cache  *tokenCache
}

// Claims of a token. Nothing in it says what the subject may do.
type Claims struct {
	jwt.RegisteredClaims
	Scope hcp.Scope `json:"hcp_scope"`
}

// Identity is who a verified token speaks for.
type Identity struct {
	Subject   string
	Scope     hcp.Scope
	ExpiresAt time.Time // without leeway
}

// NewIssuer loads the key, or makes it if this is the first node ever.
func NewIssuer(ctx context.Context, keys persistence.Keys, sealer persistence.Sealer, now func() time.Time, cfg Config) (*Issuer, error) {
	if cfg.Issuer == "" {
		cfg.Issuer = "hcp"
	}
	if cfg.Audience == "" {
		cfg.Audience = "hcp"
	}
	seed, err := RingKey(ctx, keys, sealer, keyPurpose, keyContext, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return &Issuer{cfg: cfg, key: key, kid: hex.EncodeToString(sum[:8]), now: now, cache: newTokenCache(4096),
		parser: jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience),
			jwt.WithLeeway(Leeway), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(now), jwt.WithStrictDecoding())}, nil
}

// RingKey is n random bytes that every node reads alike: made, sealed and stored
// by whoever asks first.
func RingKey(ctx context.Context, keys persistence.Keys, sealer persistence.Sealer, purpose, sealContext string, n int) ([]byte, error) {
	fresh := make([]byte, n)
	rand.Read(fresh)
	sealed, err := sealer.Seal(fresh, sealContext)
	if err != nil {
		return nil, hcp.Errorf(hcp.CodeInternal, "seal", "the key for %s cannot be sealed", purpose).WithCause(err)
	}
	stored, err := keys.RingKey(ctx, purpose, sealed)
	if err != nil {
		return nil, err
	}
	key, err := sealer.Open(stored, sealContext)
	if err != nil {
		return nil, hcp.Errorf(hcp.CodeInternal, "seal", "the key for %s cannot be opened", purpose).
			WithHint("the store was sealed with another key file").WithCause(err)
	}
	if len(key) != n {
		return nil, hcp.Errorf(hcp.CodeInternal, "seal", "the key for %s has the wrong length", purpose)
	}
	return key, nil
}

// Issue makes a token that lives ttl.
func (i *Issuer) Issue(subject string, scope hcp.Scope, ttl time.Duration) (string, error) {
	switch {
	case strings.TrimSpace(subject) == "" || len(subject) > 255:
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "bad_subject", "a token needs a subject of at most 255 bytes")
	case scope != hcp.ScopeTenant && scope != hcp.ScopeOps:
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "bad_scope", "a token's scope is tenant or ops")
	case ttl <= 0 || ttl > MaxTTL:
		return "", hcp.Errorf(hcp.CodeInvalidRequest, "bad_ttl", "a token lives longer than nothing and at most a year")
	}
	now := i.now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, Claims{Scope: scope, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: i.cfg.Issuer, Audience: jwt.ClaimStrings{i.cfg.Audience}, Subject: subject, IssuedAt: jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	}})
	t.Header["kid"] = i.kid
	return t.SignedString(i.key)
}

// Verify says whom the token speaks for, or UNAUTHORIZED with reason
// token_expired, token_not_yet_valid or bad_token.
func (i *Issuer) Verify(token string) (Identity, error) {
	now := i.now()
	if id, ok := i.cache.get(token, now); ok {
		return id, nil
	}
	if len(token) > maxTokenLen {
		return Identity{}, refused("bad_token", "the token is not valid", nil)
	}
	var claims Claims
	_, err := i.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		if kid, has := t.Header["kid"]; has && kid != i.kid {
			return nil, errors.New("the key is not known")
		}
		return i.key.Public(), nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenMalformed):
		return Identity{}, refused("bad_token", "the token is not valid", err)
	case errors.Is(err, jwt.ErrTokenExpired):
		return Identity{}, refused("token_expired", "the token has expired", err)
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return Identity{}, refused("token_not_yet_valid", "the token is not valid yet", err)
	case err != nil:
		return Identity{}, refused("bad_token", "the token is not valid", err)
	case claims.Subject == "" || len(claims.Subject) > 255 || claims.Scope != hcp.ScopeTenant && claims.Scope != hcp.ScopeOps:
		return Identity{}, refused("bad_token", "the token is not valid", errors.New("no subject or scope"))
	}
	id := Identity{Subject: claims.Subject, Scope: claims.Scope, ExpiresAt: claims.ExpiresAt.UTC()}
	i.cache.put(token, id, now)
	return id, nil
}

// Claimed is the subject that an unproven token names, cut to what may stand in
// a log: printable and at most 128 characters.
func Claimed(token string) string {
	if len(token) > maxTokenLen {
		return ""
	}
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil && claims.Subject == "" {
		return ""
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, claims.Subject)
	if r := []rune(s); len(r) > 128 {
		s = string(r[:128])
	}
	return s
}

func refused(reason, message string, cause error) error {
	return hcp.Errorf(hcp.CodeUnauthorized, reason, "%s", message).WithCause(cause)
}
