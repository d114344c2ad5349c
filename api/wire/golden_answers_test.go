package wire_test

import (
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

var (
	goldenRecord = lease.Record{
		Key: "orgs/é", Owner: "host-1", Epoch: 300, LeaseUntil: lease.InstantOfMillis(1_764_000_090_123), ForgottenAtEpoch: 299,
		Attributes: map[string]string{"addr": "10.0.0.1:80", "version": "1.2"},
	}
	goldenAnswer   = lease.Answer{Record: goldenRecord, Now: lease.InstantOfMillis(1_764_000_000_123), Remaining: 90 * time.Second, Changed: true}
	goldenPosition = lease.Position{ClusterID: "0123456789abcdef", Index: 1 << 40}
)

func goldenAnswers() []golden {
	mutated, read := wire.MutationAnswerToProto(goldenAnswer), wire.ReadAnswerToProto(goldenAnswer)
	by := wire.LeaderToProto(leader)
	lost := &lease.LostError{Record: goldenRecord, Remaining: 1500 * time.Millisecond}
	outcomes := []lease.Outcome{{Answer: goldenAnswer}, {Err: lost}, {Err: &lease.InvalidError{Field: "ttl", Problem: "is 1", Limit: "more"}}}
	results := []*leasepb.RenewResult{{Result: &leasepb.RenewResult_Answer{Answer: mutated}}}
	for _, o := range outcomes[1:] {
		failure := wire.FailureToProto(o.Err)
		failure.Message = "for people"
		results = append(results, &leasepb.RenewResult{Result: &leasepb.RenewResult_Failure{Failure: failure}})
	}
	readAnswer := goldenAnswer
	readAnswer.Changed = false
	list := lease.ListPage{Answers: []lease.Answer{readAnswer}, Now: readAnswer.Now, NextPageToken: "token"}
	listed := wire.ListPageToProto(list)
	listed.Leader = by
	history := lease.HistoryPage{NextPageToken: "token"}
	for op := lease.OpAcquire; op <= lease.OpForget; op++ {
		history.Entries = append(history.Entries, lease.Entry{Index: 1 << 40, Op: op, Key: "k", Owner: "o", Epoch: 300, At: goldenAnswer.Now, Wall: time.UnixMilli(1_764_000_000_456).UTC()})
	}
	told := wire.HistoryPageToProto(history)
	told.Leader = by
	return []golden{
		message("acquired", &leasepb.AcquireResponse{Answer: mutated, Leader: by}, answerOf[*leasepb.AcquireResponse], fromLeader{goldenAnswer, leader}),
		message("renewed", &leasepb.RenewResponse{Answer: mutated, Leader: by}, answerOf[*leasepb.RenewResponse], fromLeader{goldenAnswer, leader}),
		message("renewed, many", &leasepb.BatchRenewResponse{Results: results, Leader: by}, func(p *leasepb.BatchRenewResponse) ([]lease.Outcome, error) {
			return wire.OutcomesFromProto(p, len(outcomes))
		}, outcomes),
		message("released", &leasepb.ReleaseResponse{Answer: mutated, Leader: by}, answerOf[*leasepb.ReleaseResponse], fromLeader{goldenAnswer, leader}),
		message("forgotten", &leasepb.ForgetResponse{Answer: mutated, Leader: by}, answerOf[*leasepb.ForgetResponse], fromLeader{goldenAnswer, leader}),
		message("got", &leasepb.GetResponse{Answer: read, Leader: by}, answerOf[*leasepb.GetResponse], fromLeader{goldenAnswer, leader}),
		message("listed", listed, wire.ListPageFromProto, list),
		message("told", told, wire.HistoryPageFromProto, history),
	}
}

// fromLeader is an answer that names the leader.
type fromLeader struct {
	answer lease.Answer
	leader wire.Leader
}

func answerOf[M interface {
	GetAnswer() *leasepb.Answer
	GetLeader() *leasepb.Leader
}](m M,
) (fromLeader, error) {
	answer, err := wire.AnswerFromProto(m.GetAnswer())
	return fromLeader{answer, wire.LeaderFromProto(m.GetLeader())}, err
}

func goldenWatches() []golden {
	events := lease.WatchUpdate{Position: goldenPosition, Now: goldenAnswer.Now}
	for kind := lease.Acquired; kind <= lease.Expired; kind++ {
		events.Events = append(events.Events, lease.Event{Kind: kind, Record: goldenRecord, Index: goldenPosition.Index, At: goldenAnswer.Now})
	}
	part := lease.WatchUpdate{Events: events.Events[:1]}
	listing := lease.WatchUpdate{Records: []lease.Record{goldenRecord, {Key: "k", Owner: "o", Epoch: 1}}}
	synced := lease.WatchUpdate{Synced: true, Position: goldenPosition, Now: goldenAnswer.Now}
	mark := lease.WatchUpdate{Position: goldenPosition, Now: goldenAnswer.Now}
	marked := wire.UpdateToProto(mark)
	marked.Leader = wire.LeaderToProto(leader)
	return []golden{
		message("events", wire.UpdateToProto(events), wire.UpdateFromProto, events),
		message("events, more to come", wire.UpdateToProto(part), wire.UpdateFromProto, part),
		message("part of a listing", wire.UpdateToProto(listing), wire.UpdateFromProto, listing),
		message("the end of a listing", wire.UpdateToProto(synced), wire.UpdateFromProto, synced),
		message("a position", marked, wire.UpdateFromProto, mark),
	}
}

func goldenStatuses() []golden {
	return []golden{unread("the status", &leasepb.StatusResponse{
		ClusterId: "0123456789abcdef", Leader: "n2", Term: 7, DigestIndex: 1 << 40, Digests: map[string]string{"n2": "00ff"}, NowMs: 1_764_000_000_123, Awaited: []string{"n3"},
		Members: []*leasepb.Member{{Id: "n2", PeerAddr: "127.0.0.1:7302", ApiAddr: "127.0.0.1:7202", Role: "leader", Healthy: true, AppliedIndex: 1 << 40}},
	})}
}

func goldenFailures() []golden {
	failure := func(name string, err error) golden {
		return message(name, wire.StatusOf(err, leader).Proto(), func(s *spb.Status) (error, error) { return wire.FromCall(status.ErrorProto(s), wire.Mutates), nil }, err)
	}
	plain := func(name string, err error) golden {
		return message(name, wire.StatusOf(err, leader).Proto(), func(s *spb.Status) (failed, error) {
			err := status.ErrorProto(s)
			return failed{lease.CodeOf(wire.FromCall(err, wire.Mutates)), wire.LeaderOf(err)}, nil
		}, failed{lease.CodeOf(err), leader})
	}
	return []golden{
		failure("held", &lease.HeldError{Record: goldenRecord, Remaining: 1500 * time.Millisecond}),
		failure("held, with a place in line", &lease.HeldError{Record: goldenRecord, Remaining: 1500 * time.Millisecond, Place: 17}),
		failure("lost", &lease.LostError{Record: goldenRecord, Remaining: 1500 * time.Millisecond}),
		failure("invalid", &lease.InvalidError{Field: "to", Problem: "is \"p\"", Limit: "an owner who waits"}),
		failure("exhausted", &lease.ExhaustedError{Resource: "keys", Limit: 1 << 40, Key: "k"}),
		failure("not waiting", &lease.NotWaitingError{Key: "k", Owner: "p"}),
		failure("compacted", &lease.CompactedError{After: goldenPosition, Oldest: lease.Position{ClusterID: goldenPosition.ClusterID, Index: 1<<40 + 1}}),
		failure("watch too slow", &lease.TooSlowError{Last: goldenPosition}),
		plain("unavailable", lease.ErrUnavailable),
		plain("outcome unknown", lease.ErrOutcomeUnknown),
	}
}

// failed is what matters of an error without data.
type failed struct {
	code   lease.Code
	leader wire.Leader
}
