// Package tenant names tenants of organizations, and makes from those names the
// key of the lease that owns a tenant and the folder where its state lives.
//
// A tenant id is derived from who somebody is at an identity provider, under a
// secret key of the organization: the same person always gets the same id, and
// nobody without the key can tell a person from an id or an id from a person.
//
// The formats leave no room for a path separator, a dot, an upper-case letter or
// white space, so what is built of valid ids stays below the root it was built
// on and differs also on a file system that folds case. Every function checks
// what it is given before it uses it, and none touches the file system: a folder
// is named here and made elsewhere.
//
// It imports the standard library and package lease only. Everything is a pure
// function, safe for concurrent use.
//
// Start reading at [DeriveID] and [Ref].
package tenant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/leasenode/leasenode/lease"
)

// Limits of what ids are made from.
const (
	// MinKeyBytes is the shortest secret key; as long as the hash is wide.
	MinKeyBytes = 32
	// MaxIssuerBytes and MaxSubjectBytes bound an [Identity].
	MaxIssuerBytes  = 512
	MaxSubjectBytes = 512
	// MaxOrganizationIDBytes is the longest organization id: a DNS label.
	MaxOrganizationIDBytes = 63
)

const (
	idPrefix    = "t-"
	idHashBytes = 16
	hexDigits   = "0123456789abcdef"
)

// CodeIDInvalid is the code of an [*InvalidIDError].
const CodeIDInvalid lease.Code = "TENANT_ID_INVALID"

// InvalidIDError refuses an id, or what an id was to be made from. Its text never
// has the secret key, the issuer or the subject in it.
type InvalidIDError struct {
	Field   string // "key", "issuer", "subject", "tenant_id", "organization_id" or "root"
	Problem string // what is wrong with it
	Limit   string // what it has to be
}

func (e *InvalidIDError) Error() string {
	return fmt.Sprintf("%s %s: it must be %s", e.Field, e.Problem, e.Limit)
}

// Code returns [CodeIDInvalid].
func (e *InvalidIDError) Code() lease.Code { return CodeIDInvalid }

// Identity is who somebody is: the provider that vouches for them, and their name
// there. Each is 1 to 512 bytes of valid UTF-8 without NUL.
type Identity struct {
	Issuer  string
	Subject string
}

// DeriveID returns the tenant id of who: "t-" and the first 128 bits, in
// lower-case hex, of the HMAC-SHA256 under key of issuer, NUL, subject. Since
// neither may contain the NUL, no two identities are the same message. The key
// has at least [MinKeyBytes] bytes and is kept secret; with another key all ids
// are others. The error is an [*InvalidIDError].
func DeriveID(key []byte, who Identity) (string, error) {
	if len(key) < MinKeyBytes {
		return "", &InvalidIDError{Field: "key", Problem: fmt.Sprintf("has %d bytes", len(key)), Limit: fmt.Sprintf("at least %d bytes", MinKeyBytes)}
	}
	if err := validatePart("issuer", who.Issuer, MaxIssuerBytes); err != nil {
		return "", err
	}
	if err := validatePart("subject", who.Subject, MaxSubjectBytes); err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(who.Issuer + "\x00" + who.Subject))
	return idPrefix + hex.EncodeToString(mac.Sum(nil)[:idHashBytes]), nil
}

func validatePart(field, s string, most int) error {
	refuse := func(problem string) error {
		return &InvalidIDError{Field: field, Problem: problem, Limit: fmt.Sprintf("1 to %d bytes of valid UTF-8 without NUL", most)}
	}
	switch {
	case s == "":
		return refuse("is empty")
	case len(s) > most:
		return refuse(fmt.Sprintf("has %d bytes", len(s)))
	case !utf8.ValidString(s):
		return refuse("is not valid UTF-8")
	case strings.ContainsRune(s, 0):
		return refuse("contains NUL")
	default:
		return nil
	}
}

// ValidateID checks that id has the form that [DeriveID] gives it: "t-" and 32
// lower-case hex digits, nothing before and nothing after. The error is an
// [*InvalidIDError].
func ValidateID(id string) error {
	digits, found := strings.CutPrefix(id, idPrefix)
	if !found || len(digits) != hex.EncodedLen(idHashBytes) || strings.Trim(digits, hexDigits) != "" {
		return &InvalidIDError{Field: "tenant_id", Problem: fmt.Sprintf("is %.80q", id), Limit: `"t-" and 32 lower-case hex digits`}
	}
	return nil
}

// ValidateOrganizationID checks that id is 1 to 63 of a-z, 0-9 and -, and does not
// begin with -. The error is an [*InvalidIDError].
func ValidateOrganizationID(id string) error {
	inside := strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if id == "" || len(id) > MaxOrganizationIDBytes || !inside || id[0] == '-' {
		return &InvalidIDError{Field: "organization_id", Problem: fmt.Sprintf("is %.80q", id), Limit: fmt.Sprintf("1 to %d of a-z, 0-9 and -, not beginning with -", MaxOrganizationIDBytes)}
	}
	return nil
}

// Ref names one tenant of one organization.
type Ref struct {
	Organization string
	Tenant       string
}

// Validate checks both ids; the error is an [*InvalidIDError].
func (r Ref) Validate() error {
	if err := ValidateOrganizationID(r.Organization); err != nil {
		return err
	}
	return ValidateID(r.Tenant)
}

// LeaseKey returns the key of the lease that owns the tenant: organization/tenant.
// It is within the limits of a [lease.Store]. The error is an [*InvalidIDError].
func (r Ref) LeaseKey() (string, error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	return r.Organization + "/" + r.Tenant, nil
}

// StateRoot returns the folder of the tenant's state below root:
// root/orgs/organization/tenants/tenant, with the separators of this system and
// root cleaned as by [filepath.Clean]. An empty root is refused, because it would
// silently stand for the working directory. The error is an [*InvalidIDError].
func (r Ref) StateRoot(root string) (string, error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	if root == "" {
		return "", &InvalidIDError{Field: "root", Problem: "is empty", Limit: "a folder"}
	}
	return filepath.Join(root, "orgs", r.Organization, "tenants", r.Tenant), nil
}
