package leasetest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/leasenode/leasenode/lease"
)

// Get implements [lease.Store].
func (m *Memory) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	if err := lease.ValidateKey(req.Key); err != nil {
		return lease.Answer{}, err
	}
	if err := ended(ctx); err != nil {
		return lease.Answer{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	record := lease.Record{Key: req.Key}
	if state, known := m.keys[req.Key]; known {
		record = state.record
	}
	return answerAt(record, m.nowLocked()), nil
}

// List implements [lease.Store]. A token stays good for ever: it stands for the
// last key that was seen.
func (m *Memory) List(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
	if err := lease.ValidatePrefix(req.Prefix); err != nil {
		return lease.ListPage{}, err
	}
	size, err := lease.PageSize(req.PageSize)
	if err != nil {
		return lease.ListPage{}, err
	}
	seen, err := openToken(listToken, req.PageToken)
	if err != nil {
		return lease.ListPage{}, err
	}
	if err := ended(ctx); err != nil {
		return lease.ListPage{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	page := lease.ListPage{Now: m.nowLocked()}
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		answer := answerAt(m.keys[key].record, page.Now)
		if key <= seen || !strings.HasPrefix(key, req.Prefix) || (req.Selection == lease.HeldOnly && answer.Remaining == 0) {
			continue
		}
		if len(page.Answers) == size {
			page.NextPageToken = sealToken(listToken, page.Answers[size-1].Record.Key)
			break
		}
		page.Answers = append(page.Answers, answer)
	}
	return page, nil
}

// History implements [lease.Store]. A token stays good for ever: it stands for
// the last entry that was seen, also when that has been trimmed.
func (m *Memory) History(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	if req.Key != "" {
		if err := lease.ValidateKey(req.Key); err != nil {
			return lease.HistoryPage{}, err
		}
	}
	size, err := lease.PageSize(req.PageSize)
	if err != nil {
		return lease.HistoryPage{}, err
	}
	seen, err := openHistoryToken(req.PageToken)
	if err != nil {
		return lease.HistoryPage{}, err
	}
	if err := ended(ctx); err != nil {
		return lease.HistoryPage{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := m.log
	if req.Key != "" {
		entries = nil
		if state, known := m.keys[req.Key]; known {
			entries = state.trail
		}
	}
	first := sort.Search(len(entries), func(i int) bool { return entries[i].number > seen })
	last := min(first+size, len(entries))
	var page lease.HistoryPage
	for _, e := range entries[first:last] {
		page.Entries = append(page.Entries, e.Entry)
	}
	if last < len(entries) {
		page.NextPageToken = sealToken(historyToken, strconv.FormatUint(entries[last-1].number, 10))
	}
	return page, nil
}

// tokenKind keeps the token of one reading from being taken for that of another.
type tokenKind string

const (
	listToken    tokenKind = "list:"
	historyToken tokenKind = "history:"
)

func sealToken(kind tokenKind, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(kind) + position))
}

// openToken returns the position in a token, which is empty in an empty token.
func openToken(kind tokenKind, token string) (string, error) {
	if token == "" {
		return "", nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(token)
	position, ours := strings.CutPrefix(string(plain), string(kind))
	if err != nil || !ours {
		return "", invalidToken(token)
	}
	return position, nil
}

func openHistoryToken(token string) (uint64, error) {
	position, err := openToken(historyToken, token)
	if err != nil || position == "" {
		return 0, err
	}
	number, err := strconv.ParseUint(position, 10, 64)
	if err != nil {
		return 0, invalidToken(token)
	}
	return number, nil
}

func invalidToken(token string) error {
	return &lease.InvalidError{Field: "page_token", Problem: fmt.Sprintf("is %.80q", token), Limit: "empty, or the next page token of the page before"}
}
