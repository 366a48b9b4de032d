// Package api is HCP's REST API: stateless, one route table, one way through for
// every request. It reads the store, and changes VMs and clusters only by
// commands to their owners (Commander). It imports neither actors nor drivers nor
// a store's implementation. Fiber and huma stay in here: Fiber carries requests,
// huma makes schemas, validates bodies by them and renders the OpenAPI document.
//
// Start reading at routes.go (what there is), then Server.serve in serve.go (what
// every request goes through), then a noun: create.go, vms.go, jobs.go.
package api
