package wire

import (
	"fmt"
	"unicode/utf8"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// GetToProto returns r as it is on the wire.
func GetToProto(r lease.GetRequest) *leasepb.GetRequest {
	return &leasepb.GetRequest{Key: []byte(r.Key), Consistency: consistencyToProto(r.Consistency)}
}

// GetFromProto is the inverse of [GetToProto]; what is outside a limit is an
// [*lease.InvalidError].
func GetFromProto(p *leasepb.GetRequest) (lease.GetRequest, error) {
	consistency, err := consistencyFromProto(p.GetConsistency())
	if err != nil {
		return lease.GetRequest{}, err
	}
	r := lease.GetRequest{Key: string(p.GetKey()), Consistency: consistency}
	return r, lease.ValidateKey(r.Key)
}

// ListToProto returns r as it is on the wire. A page size and a page token that do
// not fit there are refused here; all else is for the server to judge.
func ListToProto(r lease.ListRequest) (*leasepb.ListRequest, error) {
	if err := checkPaging(r.PageSize, r.PageToken); err != nil {
		return nil, err
	}
	return &leasepb.ListRequest{
		Prefix:      []byte(r.Prefix),
		HeldOnly:    r.Selection == lease.HeldOnly,
		Consistency: consistencyToProto(r.Consistency),
		PageSize:    int32(r.PageSize),
		PageToken:   r.PageToken,
	}, nil
}

// ListFromProto is the inverse of [ListToProto], with the page size that is meant
// instead of 0; what is outside a limit is an [*lease.InvalidError]. The page token
// is for the server to judge.
func ListFromProto(p *leasepb.ListRequest) (lease.ListRequest, error) {
	r := lease.ListRequest{Prefix: string(p.GetPrefix()), PageToken: p.GetPageToken()}
	if p.GetHeldOnly() {
		r.Selection = lease.HeldOnly
	}
	if err := lease.ValidatePrefix(r.Prefix); err != nil {
		return lease.ListRequest{}, err
	}
	var err error
	if r.Consistency, err = consistencyFromProto(p.GetConsistency()); err != nil {
		return lease.ListRequest{}, err
	}
	r.PageSize, err = lease.PageSize(int(p.GetPageSize()))
	return r, err
}

// HistoryToProto returns r as it is on the wire; as [ListToProto].
func HistoryToProto(r lease.HistoryRequest) (*leasepb.HistoryRequest, error) {
	if err := checkPaging(r.PageSize, r.PageToken); err != nil {
		return nil, err
	}
	return &leasepb.HistoryRequest{
		Key:         []byte(r.Key),
		Consistency: consistencyToProto(r.Consistency),
		PageSize:    int32(r.PageSize),
		PageToken:   r.PageToken,
	}, nil
}

// HistoryFromProto is the inverse of [HistoryToProto]; as [ListFromProto].
func HistoryFromProto(p *leasepb.HistoryRequest) (lease.HistoryRequest, error) {
	r := lease.HistoryRequest{Key: string(p.GetKey()), PageToken: p.GetPageToken()}
	if r.Key != "" {
		if err := lease.ValidateKey(r.Key); err != nil {
			return lease.HistoryRequest{}, err
		}
	}
	var err error
	if r.Consistency, err = consistencyFromProto(p.GetConsistency()); err != nil {
		return lease.HistoryRequest{}, err
	}
	r.PageSize, err = lease.PageSize(int(p.GetPageSize()))
	return r, err
}

func checkPaging(size int, token string) error {
	if !utf8.ValidString(token) {
		return ErrPageToken(token)
	}
	_, err := lease.PageSize(size)
	return err
}

// ErrPageToken returns the error of a page token that no answer to the same request
// has carried.
func ErrPageToken(token string) error {
	return &lease.InvalidError{Field: "page_token", Problem: fmt.Sprintf("is %.80q", token), Limit: "empty, or the next page token of the page before of the same request"}
}

// consistencyToProto leaves what it does not know for the server to refuse.
func consistencyToProto(c lease.Consistency) leasepb.Consistency {
	switch c {
	case lease.Linearizable:
		return leasepb.Consistency_CONSISTENCY_LINEARIZABLE
	case lease.Stale:
		return leasepb.Consistency_CONSISTENCY_STALE
	default:
		return leasepb.Consistency(c)
	}
}

func consistencyFromProto(c leasepb.Consistency) (lease.Consistency, error) {
	switch c {
	case leasepb.Consistency_CONSISTENCY_LINEARIZABLE:
		return lease.Linearizable, nil
	case leasepb.Consistency_CONSISTENCY_STALE:
		return lease.Stale, nil
	default:
		return 0, &lease.InvalidError{Field: "consistency", Problem: fmt.Sprintf("%d is unknown", c), Limit: "linearizable (0) or stale (1)"}
	}
}
