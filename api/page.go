package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	v1 "github.com/lotuscloud/hcp/api/v1"
	"github.com/lotuscloud/hcp/persistence"
)

// pages makes and opens page tokens: a position, signed together with the list
// and filter it belongs to. They hold nothing secret.
type pages struct{ key []byte }

const macSize = 16

func (p *pages) sign(payload []byte, scope string) []byte {
	h := hmac.New(sha256.New, p.key)
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(payload))))
	h.Write(payload)
	h.Write([]byte(scope))
	return h.Sum(nil)[:macSize]
}

func (p *pages) seal(pos persistence.Position, scope string) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(pos.CreatedAt.UnixMicro()))
	payload = append(payload, pos.ID...)
	return base64.RawURLEncoding.EncodeToString(append(p.sign(payload, scope), payload...))
}

func (p *pages) open(token, scope string) (persistence.Position, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < macSize+8 {
		return persistence.Position{}, false
	}
	payload := b[macSize:]
	if !hmac.Equal(b[:macSize], p.sign(payload, scope)) {
		return persistence.Position{}, false
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(payload))).UTC()
	return persistence.Position{CreatedAt: at, ID: string(payload[8:])}, true
}

// paged cuts the extra row off and says where the next page begins.
func paged[R, V any](c *call, filter string, rows []R, limit int, at func(R) persistence.Position, view func(R) V) (answer, error) {
	page := v1.Page[V]{Items: make([]V, 0, len(rows))}
	if len(rows) == limit {
		rows = rows[:limit-1]
		page.NextPageToken = c.s.pages.seal(at(rows[len(rows)-1]), c.pageScope(filter))
	}
	for _, r := range rows {
		page.Items = append(page.Items, view(r))
	}
	return ok(page)
}

// all is a list that is one page.
func all[R, V any](rows []R, view func(R) V) (answer, error) {
	page := v1.Page[V]{Items: make([]V, 0, len(rows))}
	for _, r := range rows {
		page.Items = append(page.Items, view(r))
	}
	return ok(page)
}
