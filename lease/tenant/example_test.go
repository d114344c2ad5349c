package tenant_test

import (
	"bytes"
	"fmt"

	"github.com/leasenode/leasenode/lease/tenant"
)

func Example() {
	key := bytes.Repeat([]byte{7}, 32) // the organization's secret
	id, err := tenant.DeriveID(key, tenant.Identity{Issuer: "https://idp.example/acme", Subject: "user-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	leaseKey, err := tenant.Ref{Organization: "acme", Tenant: id}.LeaseKey()
	fmt.Println(leaseKey, err)
	_, err = tenant.Ref{Organization: "../etc", Tenant: id}.LeaseKey()
	fmt.Println(err)
	// Output:
	// acme/t-3129611eac9be1d5994a2b216b06ed27 <nil>
	// organization_id is "../etc": it must be 1 to 63 of a-z, 0-9 and -, not beginning with -
}
