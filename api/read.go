package api

import (
	"context"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

const (
	// maxPageBytes is the size at which a page ends early.
	maxPageBytes = 2 << 20
	// maxPageExamined is how many keys a page looks at, so that a listing of the few
	// that are held does not hold the state for long.
	maxPageExamined = 20_000
)

// Get implements leasepb.LeaseServiceServer.
func (s *leaseServer) Get(ctx context.Context, req *leasepb.GetRequest) (*leasepb.GetResponse, error) {
	r, err := wire.GetFromProto(req)
	if err != nil {
		return nil, err
	}
	find := func() (sight, error) {
		view, err := s.node.State.Get(r.Key)
		return sight{records: []lease.Record{view.Record}, asOf: view.Now}, err
	}
	return answer(ctx, s, call[*leasepb.GetRequest, *leasepb.GetResponse]{
		subject: wire.Subject{What: "get", Key: r.Key}, consistency: r.Consistency, request: req, there: leasepb.LeaseServiceClient.Get,
		here: func(ctx context.Context) (*leasepb.GetResponse, error) {
			seen, err := s.see(ctx, r.Consistency, find)
			if err != nil {
				return nil, err
			}
			return &leasepb.GetResponse{Answer: wire.ReadAnswerToProto(seen.answers()[0]), Leader: s.leader()}, nil
		},
	})
}

// List implements leasepb.LeaseServiceServer.
func (s *leaseServer) List(ctx context.Context, req *leasepb.ListRequest) (*leasepb.ListResponse, error) {
	r, err := wire.ListFromProto(req)
	if err != nil {
		return nil, err
	}
	after, err := openListToken(r)
	if err != nil {
		return nil, err
	}
	var view fsm.ListView
	find := func() (found sight, err error) {
		view, err = s.node.State.List(fsm.ListQuery{
			Prefix: r.Prefix, After: after, Selection: r.Selection,
			Limit: r.PageSize, MaxBytes: maxPageBytes, MaxExamined: maxPageExamined,
		})
		return sight{records: view.Records, asOf: view.Now}, err
	}
	return answer(ctx, s, call[*leasepb.ListRequest, *leasepb.ListResponse]{
		subject: wire.Subject{What: "list", Key: r.Prefix}, consistency: r.Consistency, request: req, there: leasepb.LeaseServiceClient.List,
		here: func(ctx context.Context) (*leasepb.ListResponse, error) {
			seen, err := s.see(ctx, r.Consistency, find)
			if err != nil {
				return nil, err
			}
			page := lease.ListPage{Answers: seen.answers(), Now: seen.asOf}
			if view.More {
				page.NextPageToken = sealListToken(r, view.Next)
			}
			response := wire.ListPageToProto(page)
			response.Leader = s.leader()
			return response, nil
		},
	})
}

// History implements leasepb.LeaseServiceServer.
func (s *leaseServer) History(ctx context.Context, req *leasepb.HistoryRequest) (*leasepb.HistoryResponse, error) {
	r, err := wire.HistoryFromProto(req)
	if err != nil {
		return nil, err
	}
	after, err := openHistoryToken(r)
	if err != nil {
		return nil, err
	}
	var view fsm.HistoryView
	find := func() (found sight, err error) {
		view, err = s.node.State.History(fsm.HistoryQuery{Key: r.Key, After: after, Limit: r.PageSize, MaxBytes: maxPageBytes})
		return sight{}, err
	}
	return answer(ctx, s, call[*leasepb.HistoryRequest, *leasepb.HistoryResponse]{
		subject: wire.Subject{What: "history", Key: r.Key}, consistency: r.Consistency, request: req, there: leasepb.LeaseServiceClient.History,
		here: func(ctx context.Context) (*leasepb.HistoryResponse, error) {
			if _, err := s.see(ctx, r.Consistency, find); err != nil {
				return nil, err
			}
			page := lease.HistoryPage{Entries: view.Entries}
			if view.More {
				page.NextPageToken = sealHistoryToken(r, view.Next)
			}
			response := wire.HistoryPageToProto(page)
			response.Leader = s.leader()
			return response, nil
		},
	})
}
