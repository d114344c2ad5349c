package leasetest_test

import (
	"context"
	"slices"
	"strings"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// altered is a store with some methods replaced; nil keeps the inner one.
type altered struct {
	lease.Store
	acquire    func(context.Context, lease.AcquireRequest) (lease.Answer, error)
	forget     func(context.Context, lease.ForgetRequest) (lease.Answer, error)
	batchRenew func(context.Context, []lease.RenewRequest) ([]lease.Outcome, error)
	get        func(context.Context, lease.GetRequest) (lease.Answer, error)
	list       func(context.Context, lease.ListRequest) (lease.ListPage, error)
	history    func(context.Context, lease.HistoryRequest) (lease.HistoryPage, error)
}

func (s altered) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if s.acquire == nil {
		return s.Store.Acquire(ctx, req)
	}
	return s.acquire(ctx, req)
}

func (s altered) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	if s.forget == nil {
		return s.Store.Forget(ctx, req)
	}
	return s.forget(ctx, req)
}

func (s altered) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	if s.batchRenew == nil {
		return s.Store.BatchRenew(ctx, reqs)
	}
	return s.batchRenew(ctx, reqs)
}

func (s altered) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	if s.get == nil {
		return s.Store.Get(ctx, req)
	}
	return s.get(ctx, req)
}

func (s altered) List(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
	if s.list == nil {
		return s.Store.List(ctx, req)
	}
	return s.list(ctx, req)
}

func (s altered) History(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	if s.history == nil {
		return s.Store.History(ctx, req)
	}
	return s.history(ctx, req)
}

// brokenElsewhere has a flaw for each check that no exported broken store is about.
func brokenElsewhere() map[string]brokenCase {
	return map[string]brokenCase{
		"ignores contexts": {wrap: ignoresContexts, red: []string{"a call whose context has ended does nothing"}},
		"splits batches":   {wrap: splitsBatches, red: []string{"a batch has at most 1000 renewals"}},
		"unknown keys are errors": {
			wrap: refusesUnknownKeys,
			red:  []string{"a key that was never granted has epoch 0 and is no error"},
		},
		"no stale reads": {wrap: refusesStaleReads, red: []string{"a stale read is answered"}},
		"lists by path": {
			wrap: listsByPath,
			red:  []string{"a listing is in the order of the bytes, by a prefix of bytes"},
		},
		"loses the last of a page": {
			wrap:  losesTheLastOfAPage,
			red:   []string{"the pages of a listing make up the whole"},
			green: []string{"the pages of a history make up the whole"},
		},
		"cuts long text": {
			wrap: cutsLongText,
			red:  []string{"keys are held to their limits", "owners are held to their limits", "attributes are held to their limits"},
		},
		"clamps pages": {wrap: clampsPages, red: []string{"pages, prefixes and page tokens are held to their limits"}},
		"folds case": {
			wrap: foldsCase,
			red:  []string{"keys are independent"},
		},
		"shares attributes": {wrap: sharesAttributes, red: []string{"answers are copies"}},
		"request ids are global": {
			wrap: globalRequestIDs,
			red:  []string{"a request id means nothing for another owner or key"},
		},
		"keeps no renewals": {
			wrap: keepsNoRenewals,
			red:  []string{"of a key's renewals the latest are kept, and no grant leaves for them"},
		},
		"keeps few grants": {wrap: keepsFewGrants, red: []string{"of a key's grants the latest are kept, each whole"}},
		"forgets anew":     {wrap: forgetsAnew, red: []string{"forgetting again changes nothing"}},
	}
}

func ignoresContexts(s lease.Store) lease.Store {
	return altered{Store: s, acquire: func(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
		return s.Acquire(context.WithoutCancel(ctx), req)
	}}
}

func forgetsAnew(s lease.Store) lease.Store {
	return altered{Store: s, forget: func(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
		answer, err := s.Forget(ctx, req)
		answer.Changed = err == nil
		return answer, err
	}}
}

func splitsBatches(s lease.Store) lease.Store {
	return altered{Store: s, batchRenew: func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
		var all []lease.Outcome
		for part := range slices.Chunk(reqs, lease.MaxBatchRenew) {
			outcomes, err := s.BatchRenew(ctx, part)
			if err != nil {
				return nil, err
			}
			all = append(all, outcomes...)
		}
		return all, nil
	}}
}

func refusesUnknownKeys(s lease.Store) lease.Store {
	return altered{Store: s, get: func(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
		answer, err := s.Get(ctx, req)
		if err == nil && answer.Record.Epoch == 0 {
			err = &lease.LostError{Record: answer.Record}
		}
		return answer, err
	}}
}

func refusesStaleReads(s lease.Store) lease.Store {
	return altered{Store: s, get: func(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
		if req.Consistency == lease.Stale {
			return lease.Answer{}, lease.ErrUnavailable
		}
		return s.Get(ctx, req)
	}}
}

// listsByPath takes a prefix for a folder.
func listsByPath(s lease.Store) lease.Store {
	return altered{Store: s, list: func(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
		page, err := s.List(ctx, req)
		page.Answers = slices.DeleteFunc(page.Answers, func(a lease.Answer) bool {
			rest := strings.TrimPrefix(a.Record.Key, strings.TrimSuffix(req.Prefix, "/"))
			return rest != "" && !strings.HasPrefix(rest, "/")
		})
		return page, err
	}}
}

func losesTheLastOfAPage(s lease.Store) lease.Store {
	return altered{Store: s, list: func(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
		page, err := s.List(ctx, req)
		if page.NextPageToken != "" {
			page.Answers = page.Answers[:len(page.Answers)-1]
		}
		return page, err
	}}
}

func cutsLongText(s lease.Store) lease.Store {
	return altered{Store: s, acquire: func(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
		req.Key = req.Key[:min(len(req.Key), lease.MaxKeyBytes)]
		req.Owner = req.Owner[:min(len(req.Owner), lease.MaxOwnerBytes)]
		kept := map[string]string{}
		for name, value := range req.Attributes {
			if len(kept) < lease.MaxAttributes {
				kept[name] = value[:min(len(value), 100)]
			}
		}
		req.Attributes = kept
		return s.Acquire(ctx, req)
	}}
}

func clampsPages(s lease.Store) lease.Store {
	return altered{Store: s, list: func(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
		req.PageSize = min(max(req.PageSize, 0), lease.MaxPageSize)
		return s.List(ctx, req)
	}}
}

func foldsCase(s lease.Store) lease.Store {
	return altered{Store: s, acquire: func(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
		req.Key = strings.ToLower(req.Key)
		return s.Acquire(ctx, req)
	}}
}

func sharesAttributes(s lease.Store) lease.Store {
	shared := map[string]string{}
	return altered{Store: s, get: func(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
		answer, err := s.Get(ctx, req)
		for name, value := range answer.Record.Attributes {
			if _, known := shared[name]; !known {
				shared[name] = value
			}
		}
		answer.Record.Attributes = shared
		return answer, err
	}}
}

// globalRequestIDs gives a grant to whoever knows its request id.
func globalRequestIDs(s lease.Store) lease.Store {
	owners := map[string]string{}
	return altered{Store: s, acquire: func(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
		if req.RequestID != "" {
			if owner, known := owners[req.Key+req.RequestID]; known {
				req.Owner = owner
			}
			owners[req.Key+req.RequestID] = req.Owner
		}
		return s.Acquire(ctx, req)
	}}
}

func keepsNoRenewals(s lease.Store) lease.Store {
	return altered{Store: s, history: func(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
		page, err := s.History(ctx, req)
		page.Entries = slices.DeleteFunc(page.Entries, func(e lease.Entry) bool { return e.Op == lease.OpRenew })
		return page, err
	}}
}

func keepsFewGrants(s lease.Store) lease.Store {
	return altered{Store: s, history: func(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
		page, err := s.History(ctx, req)
		page.Entries = page.Entries[max(0, len(page.Entries)-leasetest.KeptGrants):]
		return page, err
	}}
}
