package tenant_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/tenant"
)

const knownID = "t-3129611eac9be1d5994a2b216b06ed27"

func secret() []byte { return bytes.Repeat([]byte{7}, 32) }

func acmeUser(subject string) tenant.Identity {
	return tenant.Identity{Issuer: "https://idp.example/acme", Subject: subject}
}

func derive(t *testing.T, key []byte, who tenant.Identity) string {
	t.Helper()
	id, err := tenant.DeriveID(key, who)
	if err != nil {
		t.Fatalf("DeriveID(%+v): %v", who, err)
	}
	if err := tenant.ValidateID(id); err != nil {
		t.Fatalf("DeriveID(%+v) made an id that is refused: %v", who, err)
	}
	return id
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *tenant.InvalidIDError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an InvalidIDError", err)
	}
	if invalid.Field != field || !strings.HasPrefix(err.Error(), field+" ") || !strings.Contains(err.Error(), invalid.Limit) {
		t.Errorf("got %q of field %q, want it to name the field %q and its limit", err, invalid.Field, field)
	}
	if got := lease.CodeOf(fmt.Errorf("opening: %w", err)); got != "TENANT_ID_INVALID" {
		t.Errorf("code is %q, want TENANT_ID_INVALID", got)
	}
}

func TestDeriveIDKnownAnswer(t *testing.T) {
	if got := derive(t, secret(), acmeUser("user-1")); got != knownID {
		t.Errorf("got %s, want %s", got, knownID)
	}
}

func TestDeriveIDIsTruncatedHMAC(t *testing.T) {
	key := []byte("a key that is longer than the minimum of 32 bytes, and than a block of the hash")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("iss\x00sub"))
	want := fmt.Sprintf("t-%x", mac.Sum(nil)[:16])
	for range 2 {
		if got := derive(t, key, tenant.Identity{Issuer: "iss", Subject: "sub"}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDeriveIDTellsIdentitiesApart(t *testing.T) {
	seen := map[string]string{}
	for name, id := range map[string]string{
		"reference":              derive(t, secret(), acmeUser("user-1")),
		"other subject":          derive(t, secret(), acmeUser("user-2")),
		"subject in other case":  derive(t, secret(), acmeUser("User-1")),
		"other issuer":           derive(t, secret(), tenant.Identity{Issuer: "https://idp.example/other", Subject: "user-1"}),
		"other key":              derive(t, bytes.Repeat([]byte{8}, 32), acmeUser("user-1")),
		"boundary one way":       derive(t, secret(), tenant.Identity{Issuer: "ab", Subject: "c"}),
		"boundary the other way": derive(t, secret(), tenant.Identity{Issuer: "a", Subject: "bc"}),
	} {
		if other, dup := seen[id]; dup {
			t.Errorf("%s and %s have the same id %s", name, other, id)
		}
		seen[id] = name
	}
}

func TestDeriveIDAcceptsWhatIsWithinLimits(t *testing.T) {
	for name, who := range map[string]tenant.Identity{
		"one byte":               {Issuer: "i", Subject: "s"},
		"512 bytes":              {Issuer: strings.Repeat("i", 512), Subject: strings.Repeat("s", 512)},
		"512 bytes in 256 runes": {Issuer: "i", Subject: strings.Repeat("é", 256)},
		"beyond ASCII and BMP":   acmeUser("用户-é-😀"),
		"line feed":              acmeUser("a\nb"),
	} {
		t.Run(name, func(t *testing.T) { derive(t, secret(), who) })
	}
}

func TestDeriveIDRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		key   []byte
		who   tenant.Identity
		field string
	}{
		"no key":                 {nil, acmeUser("user"), "key"},
		"31 byte key":            {secret()[:31], acmeUser("user"), "key"},
		"empty issuer":           {secret(), tenant.Identity{Subject: "user"}, "issuer"},
		"513 byte issuer":        {secret(), tenant.Identity{Issuer: strings.Repeat("i", 513), Subject: "user"}, "issuer"},
		"NUL in issuer":          {secret(), tenant.Identity{Issuer: "iss\x00x", Subject: "user"}, "issuer"},
		"issuer not UTF-8":       {secret(), tenant.Identity{Issuer: "iss\xff", Subject: "user"}, "issuer"},
		"empty subject":          {secret(), acmeUser(""), "subject"},
		"513 byte subject":       {secret(), acmeUser(strings.Repeat("s", 513)), "subject"},
		"514 bytes in 257 runes": {secret(), acmeUser(strings.Repeat("é", 257)), "subject"},
		"NUL in subject":         {secret(), acmeUser("user\x00x"), "subject"},
		"trailing NUL":           {secret(), acmeUser("user\x00"), "subject"},
		"surrogate alone":        {secret(), acmeUser("\xed\xa0\x80"), "subject"},
		"surrogate inside":       {secret(), acmeUser("a\xed\xa0\x81b"), "subject"},
		"cut-off character":      {secret(), acmeUser("\xe7\x94"), "subject"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := tenant.DeriveID(c.key, c.who)
			wantInvalid(t, err, c.field)
			if id != "" {
				t.Errorf("refused, and gave the id %q", id)
			}
		})
	}
}

func TestInvalidIDErrorKeepsSecrets(t *testing.T) {
	_, err := tenant.DeriveID([]byte("hunter2"), acmeUser("user"))
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the key is in %q", err)
	}
	_, err = tenant.DeriveID(secret(), acmeUser("alice@example.org\x00"))
	if strings.Contains(err.Error(), "alice") {
		t.Errorf("the subject is in %q", err)
	}
}

func TestValidateOrganizationID(t *testing.T) {
	for _, good := range []string{"acme", "a", "0", "acme-eu-1", "0day", "a-", "a--b", strings.Repeat("a", 63)} {
		if err := tenant.ValidateOrganizationID(good); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range badOrganizations() {
		t.Run(fmt.Sprintf("%.20q", bad), func(t *testing.T) {
			wantInvalid(t, tenant.ValidateOrganizationID(bad), "organization_id")
		})
	}
}

func badOrganizations() []string {
	return []string{
		"", "Acme", "acmE", "-acme", "-", "a_b", "a/b", "/", "/acme", "acme/", `a\b`, ".", "..", "../x", "a.b", "acme/x",
		strings.Repeat("a", 64), "acme\n", "\nacme", "ac\nme", "acme\r", " acme", "acme ", "ac me", "acme\t", "acme\x00", "\x00",
		"ácme", "аcme", "acme\u200b", "acme\xff", "a:b", "a%2fb", "~",
	}
}

func TestValidateID(t *testing.T) {
	for _, good := range []string{knownID, "t-" + strings.Repeat("0", 32), "t-" + strings.Repeat("f", 32)} {
		if err := tenant.ValidateID(good); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range badTenants() {
		t.Run(fmt.Sprintf("%.50q", bad), func(t *testing.T) {
			wantInvalid(t, tenant.ValidateID(bad), "tenant_id")
		})
	}
}

func badTenants() []string {
	digits := strings.TrimPrefix(knownID, "t-")
	return []string{
		"", "local", "t", "t-", "t-" + digits[1:], "t-" + digits + "0", "t-" + strings.ToUpper(digits), "T-" + digits,
		digits, "t_" + digits, "tt-" + digits, "t--" + digits[1:], knownID + "\n", knownID + "\r\n", knownID[:33] + "\n", "\n" + knownID,
		" " + knownID, knownID + " ", knownID + "\x00", "../" + knownID, knownID + "/..", knownID + "/../" + knownID, "../../etc",
		"t-" + strings.Repeat("g", 32), "t-" + digits[:16] + "/" + digits[17:], "t-" + digits[:30] + "é", "t-" + strings.Repeat("\xff", 32),
	}
}

func TestRefBuildsKeyAndPath(t *testing.T) {
	ref := tenant.Ref{Organization: "acme", Tenant: knownID}
	key, err := ref.LeaseKey()
	if err != nil || key != "acme/"+knownID {
		t.Errorf("LeaseKey() = %q, %v", key, err)
	}
	root := filepath.Join(t.TempDir(), "state")
	path, err := ref.StateRoot(root)
	if want := filepath.Join(root, "orgs", "acme", "tenants", knownID); err != nil || path != want {
		t.Errorf("StateRoot() = %q, %v, want %q", path, err, want)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("naming a folder touched the file system: %v", err)
	}
}

func TestRefOfLongestIDsMakesAValidLeaseKey(t *testing.T) {
	key, err := tenant.Ref{Organization: strings.Repeat("a", 63), Tenant: knownID}.LeaseKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.ValidateKey(key); err != nil {
		t.Error(err)
	}
}

func TestRefRefusesBadIDs(t *testing.T) {
	root := t.TempDir()
	check := func(ref tenant.Ref, field string) {
		t.Run(fmt.Sprintf("%.60q", ref), func(t *testing.T) {
			key, err := ref.LeaseKey()
			wantInvalid(t, err, field)
			path, err := ref.StateRoot(root)
			wantInvalid(t, err, field)
			if key != "" || path != "" {
				t.Errorf("refused, and gave %q and %q", key, path)
			}
		})
	}
	for _, bad := range badOrganizations() {
		check(tenant.Ref{Organization: bad, Tenant: knownID}, "organization_id")
	}
	for _, bad := range badTenants() {
		check(tenant.Ref{Organization: "acme", Tenant: bad}, "tenant_id")
	}
	check(tenant.Ref{Organization: knownID, Tenant: "acme"}, "tenant_id")
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("the root has %v, %v: a refused id touched it", entries, err)
	}
}

func TestStateRootRefusesAnEmptyRoot(t *testing.T) {
	_, err := tenant.Ref{Organization: "acme", Tenant: knownID}.StateRoot("")
	wantInvalid(t, err, "root")
}
