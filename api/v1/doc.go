// Package v1 holds the request and answer shapes of the REST API that are not
// views of the domain. The server and the Go client both use it. It holds no
// behaviour and imports the domain only. Start reading at CreateVM.
package v1
