package hcp

// Code is the stable name of an error class. Codes are never renamed.
type Code string

const (
	CodeInvalidRequest        Code = "INVALID_REQUEST"
	CodeUnauthorized          Code = "UNAUTHORIZED"
	CodeForbidden             Code = "FORBIDDEN"
	CodePolicyDenied          Code = "POLICY_DENIED"
	CodeNotFound              Code = "NOT_FOUND"
	CodeMethodNotAllowed      Code = "METHOD_NOT_ALLOWED"
	CodeConflict              Code = "CONFLICT"
	CodeNoCapacity            Code = "NO_CAPACITY"
	CodeIdempotencyInProgress Code = "IDEMPOTENCY_IN_PROGRESS"
	CodeCursorExpired         Code = "CURSOR_EXPIRED"
	CodePreconditionFailed    Code = "PRECONDITION_FAILED"
	CodePayloadTooLarge       Code = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMediaType  Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeFeatureNotSupported   Code = "FEATURE_NOT_SUPPORTED"
	CodeIdempotencyKeyReused  Code = "IDEMPOTENCY_KEY_REUSED"
	CodePreconditionRequired  Code = "PRECONDITION_REQUIRED"
	CodeQuotaExceeded         Code = "QUOTA_EXCEEDED"
	CodeRateLimited           Code = "RATE_LIMITED"
	CodeInternal              Code = "INTERNAL_ERROR"
	CodeUnavailable           Code = "UNAVAILABLE"
	CodeProviderUnavailable   Code = "PROVIDER_UNAVAILABLE"
	CodeProviderTimeout       Code = "PROVIDER_TIMEOUT"
	// The following appear on jobs only.
	CodeCancelled          Code = "CANCELLED"
	CodeOutcomeUnknown     Code = "OUTCOME_UNKNOWN"
	CodeVerificationFailed Code = "VERIFICATION_FAILED"
)

// Audience says who can do something about an error.
type Audience string

const (
	AudienceCaller   Audience = "caller"
	AudienceOperator Audience = "operator"
)

// CatalogueEntry is what HCP knows of a code: the HTTP status, whether the same
// call may succeed later, who can act, the exit code of hcpctl, the default hint.
type CatalogueEntry struct {
	Code      Code
	Status    int // HTTP; 0 for codes that appear on jobs only
	Retryable bool
	Audience  Audience
	Exit      int
	Title     string
	Hint      string
}

// Exit codes of hcpctl; the meaning is part of the contract with scripts.
const (
	ExitOK             = 0
	ExitFailed         = 1
	ExitUsage          = 2
	ExitNotFound       = 3
	ExitNotAllowed     = 4
	ExitConflict       = 5
	ExitJobFailed      = 6
	ExitWaitTimeout    = 7
	ExitNeedsAttention = 8
	ExitPartial        = 9
	ExitRefused        = 10
	ExitUnavailable    = 75
	ExitInterrupted    = 130
)

// Catalogue lists every code once, in the order of the documentation. Problem
// documents, exit codes, docs/errors.md and `hcpctl explain error` come from it.
var catalogue = []CatalogueEntry{
	{CodeInvalidRequest, 400, false, AudienceCaller, ExitUsage, "The request is not valid", "correct the fields named in errors and send it again"},
	{CodeUnauthorized, 401, false, AudienceCaller, ExitNotAllowed, "The call carries no valid token", "sign in again, or pass a fresh token"},
	{CodeForbidden, 403, false, AudienceCaller, ExitNotAllowed, "The caller may not do this", "ask a project owner for a role that allows the action"},
	{CodePolicyDenied, 403, false, AudienceCaller, ExitRefused, "A policy forbids this", "see the policy named in details, or ask its owner"},
	{CodeNotFound, 404, false, AudienceCaller, ExitNotFound, "There is no such thing here", "check the name or id and the project"},
	{CodeMethodNotAllowed, 405, false, AudienceCaller, ExitUsage, "The method is not allowed on this path", "see the OpenAPI document for the methods of this path"},
	{CodeConflict, 409, false, AudienceCaller, ExitConflict, "The call conflicts with the present state", "look at the resource, then decide"},
	{CodeNoCapacity, 409, false, AudienceOperator, ExitRefused, "No cluster has room for this", "try a smaller flavor or another zone, or ask the operator for capacity"},
	{CodeIdempotencyInProgress, 409, true, AudienceCaller, ExitConflict, "The first call with this key has not finished", "repeat the same call in a moment"},
	{CodeCursorExpired, 410, false, AudienceCaller, ExitFailed, "The cursor is too old", "list again and start from the new cursor"},
	{CodePreconditionFailed, 412, false, AudienceCaller, ExitConflict, "The resource has changed meanwhile", "read it again and repeat the change on what you see"},
	{CodePayloadTooLarge, 413, false, AudienceCaller, ExitUsage, "The body is too large", "send less; the limit stands in details"},
	{CodeUnsupportedMediaType, 415, false, AudienceCaller, ExitUsage, "The body is not of a supported media type", "send application/json"},
	{CodeFeatureNotSupported, 422, false, AudienceCaller, ExitRefused, "The zone cannot do this", "see the capabilities of the zone, or use another zone"},
	{CodeIdempotencyKeyReused, 422, false, AudienceCaller, ExitConflict, "The idempotency key was used for another request", "use a new key for a new request"},
	{CodePreconditionRequired, 428, false, AudienceCaller, ExitConflict, "The call needs an If-Match header", "read the resource and send its ETag as If-Match"},
	{CodeQuotaExceeded, 429, false, AudienceCaller, ExitRefused, "The quota does not allow this", "delete something, or ask for a higher quota"},
	{CodeRateLimited, 429, true, AudienceCaller, ExitUnavailable, "Too many calls", "wait as long as Retry-After says"},
	{CodeInternal, 500, false, AudienceOperator, ExitFailed, "HCP met an error it did not expect", "give the trace id to the operator"},
	{CodeUnavailable, 503, true, AudienceOperator, ExitUnavailable, "HCP cannot serve this just now", "repeat the call after Retry-After"},
	{CodeProviderUnavailable, 503, true, AudienceOperator, ExitUnavailable, "The hypervisor does not answer", "HCP tries again by itself; the operator sees the reason"},
	{CodeProviderTimeout, 504, true, AudienceOperator, ExitUnavailable, "The hypervisor took too long", "HCP tries again within the deadline; the operator sees the call"},
	{CodeCancelled, 0, false, AudienceCaller, ExitJobFailed, "The job was cancelled", "start it again if it is still wanted"},
	{CodeOutcomeUnknown, 0, true, AudienceOperator, ExitJobFailed, "It is not known whether the hypervisor did it", "refresh the VM; its state tells what happened"},
	{CodeVerificationFailed, 0, false, AudienceOperator, ExitJobFailed, "The hypervisor said done, but it is not", "ask the operator to look at the cluster"},
}

var catalogueByCode = func() map[Code]CatalogueEntry {
	m := make(map[Code]CatalogueEntry, len(catalogue))
	for _, e := range catalogue {
		m[e.Code] = e
	}
	return m
}()

// Catalogue returns a copy of all entries in documentation order.
func Catalogue() []CatalogueEntry { return append([]CatalogueEntry(nil), catalogue...) }

// Entry is the catalogue's entry; an unknown code reads as INTERNAL_ERROR.
func (c Code) Entry() CatalogueEntry {
	if e, ok := catalogueByCode[c]; ok {
		return e
	}
	return catalogueByCode[CodeInternal]
}

// Known reports whether the code stands in the catalogue.
func (c Code) Known() bool { _, ok := catalogueByCode[c]; return ok }
