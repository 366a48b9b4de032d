// Package simapi is the language of the simulated hypervisor: its operations,
// the JSON of its API and of its fault controls. It has no behaviour and no
// dependency. The hypervisor (world, simd), the driver (sim) and the control
// client (simctl) share nothing else.
//
// Every API call is POST /api/{op}, every control POST /control/{name}, both
// with a JSON object as body (nothing reads as {}). An unknown path, operation,
// control or field is refused. Start reading at Op and Machine.
package simapi
