package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// A page token is, in base64url without padding: the version, a sum, and the
// position that the page ended at. The sum is over the position and the request, so
// that a token is good for no other request; it protects from mistakes, not from
// malice, since a position gives away nothing that a request could not ask for.
const (
	tokenVersion  = 1
	tokenSumBytes = 8
)

// tokenOwner names the request that a token is for.
type tokenOwner string

func listTokenOwner(r lease.ListRequest) tokenOwner {
	return tokenOwner("list\x00" + string(rune(r.Selection)) + r.Prefix)
}

func historyTokenOwner(r lease.HistoryRequest) tokenOwner {
	return tokenOwner("history\x00" + r.Key)
}

func (o tokenOwner) sum(position []byte) []byte {
	h := sha256.New()
	h.Write(position)
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(position))))
	h.Write([]byte(o))
	return h.Sum(nil)[:tokenSumBytes]
}

func (o tokenOwner) seal(position []byte) string {
	token := append([]byte{tokenVersion}, o.sum(position)...)
	return base64.RawURLEncoding.EncodeToString(append(token, position...))
}

// open returns the position in token, or an [*lease.InvalidError].
func (o tokenOwner) open(token string) ([]byte, error) {
	const header = 1 + tokenSumBytes
	if len(token) > base64.RawURLEncoding.EncodedLen(header+lease.MaxKeyBytes) {
		return nil, wire.ErrPageToken(token)
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(data) < header {
		return nil, wire.ErrPageToken(token)
	}
	position := data[header:]
	if o.seal(position) != token {
		return nil, wire.ErrPageToken(token)
	}
	return position, nil
}

func sealListToken(r lease.ListRequest, after string) string {
	return listTokenOwner(r).seal([]byte(after))
}

// openListToken returns the key that r's page comes after; "" for the first page.
func openListToken(r lease.ListRequest) (string, error) {
	if r.PageToken == "" {
		return "", nil
	}
	position, err := listTokenOwner(r).open(r.PageToken)
	return string(position), err
}

func sealHistoryToken(r lease.HistoryRequest, after fsm.Position) string {
	position := binary.BigEndian.AppendUint64(nil, after.Index)
	return historyTokenOwner(r).seal(binary.BigEndian.AppendUint32(position, after.Ordinal))
}

// openHistoryToken returns the position that r's page comes after; zero for the
// first page.
func openHistoryToken(r lease.HistoryRequest) (fsm.Position, error) {
	if r.PageToken == "" {
		return fsm.Position{}, nil
	}
	position, err := historyTokenOwner(r).open(r.PageToken)
	if err != nil {
		return fsm.Position{}, err
	}
	if len(position) != 8+4 {
		return fsm.Position{}, wire.ErrPageToken(r.PageToken)
	}
	return fsm.Position{Index: binary.BigEndian.Uint64(position), Ordinal: binary.BigEndian.Uint32(position[8:])}, nil
}
