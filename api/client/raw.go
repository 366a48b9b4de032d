package client

import (
	"context"
	"net/http"
)

// Raw sends a GET to a path of the API, escaped and with its query, and returns
// the body as it came. It is for what this package has no method for.
func (c *Client) Raw(ctx context.Context, path string) ([]byte, Meta, error) {
	var raw rawBody
	meta, err := c.call(ctx, request{method: http.MethodGet, path: path}, &raw)
	return raw, meta, err
}
