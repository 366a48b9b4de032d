package sqlstore

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

// ListAudit walks the index of the request, of the project, or of all.
func (r Reads) ListAudit(ctx context.Context, f persistence.AuditFilter) ([]hcp.AuditRecord, error) {
	if err := checkPage(f.Page); err != nil {
		return nil, err
	}
	var w where
	w.equal("project", string(f.Project))
	w.equal("actor", f.Actor)
	w.equal("action", f.Action)
	w.equal("kind", string(f.Kind))
	w.equal("request_id", string(f.RequestID))
	w.after(f.Page, "time", "id")
	rows, err := r.DB.Query(ctx, `select body from audit`+w.String()+` order by time desc, id desc limit `+strconv.Itoa(f.Page.Limit), w.args...)
	return collect(rows, err, func(rows Rows) (hcp.AuditRecord, error) {
		var a hcp.AuditRecord
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return a, err
		}
		if err := json.Unmarshal(body, &a); err != nil {
			return a, damaged("audit row", err)
		}
		return a, nil
	})
}
