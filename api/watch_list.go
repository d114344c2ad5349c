package api

import (
	"context"
	"fmt"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

const (
	// recordBytes is what the texts of one record have at most, recordExtra what one takes
	// up beside them.
	recordBytes = lease.MaxKeyBytes + lease.MaxOwnerBytes + lease.MaxAttributeBytes
	recordExtra = 56
)

// listing is a listing while it is sent.
type listing struct {
	watch *watch
	query fsm.ListQuery
	// changes has what changes after the first page; nil as long as there is one page only.
	changes *feed.Watcher
}

// list sends what there is, and returns the index of which state it is.
//
// Each page is read and done with before it is sent, however slow the client, so the
// pages are of different states. What has changed from the first to the last of them is
// sent again from the feed, as it came to be: with that the listing is the state of the
// last page.
//
// A client may take as long as it likes for a listing, as long as it takes each page in
// time: all that is kept for it is a page and a place in the feed, which keeps nothing
// for its sake. When that place is gone the listing is void and ends, at the next page.
func (w *watch) list(ctx context.Context) (uint64, error) {
	l := &listing{watch: w, query: fsm.ListQuery{Prefix: w.request.Prefix, Selection: w.request.Selection, Limit: listRecords, MaxBytes: listBytes, MaxExamined: maxPageExamined}}
	if w.request.Key != "" { // the first that begins with it
		l.query.Prefix, l.query.Limit, l.query.MaxBytes = w.request.Key, 1, recordBytes
	}
	defer l.close()
	for {
		end, err := l.page(ctx)
		if err != nil || end.whole {
			return end.index, err
		}
		if !end.last {
			continue
		}
		if err := l.sendChanged(ctx, end.index); err != nil {
			return 0, err
		}
		return end.index, l.sendEnd(ctx, end)
	}
}

// pageEnd is where a page leaves a listing.
type pageEnd struct {
	index uint64
	now   lease.Instant
	last  bool
	// whole says that the page was the only one, and has told that the listing is complete.
	whole bool
}

func (l *listing) close() {
	if l.changes != nil {
		l.changes.Close()
	}
}

// page reads the next page and sends it.
func (l *listing) page(ctx context.Context) (pageEnd, error) {
	w := l.watch
	room := roomFor(l.query.MaxBytes + l.query.Limit*recordExtra)
	p, err := w.take(ctx, size{room, room})
	if err != nil {
		return pageEnd{}, err
	}
	if l.changes != nil {
		if err := l.changes.Kept(); err != nil {
			p.giveBack()
			return pageEnd{}, err
		}
	}
	u, end, err := l.read(ctx, p)
	if err != nil || !end.whole && len(u.Records) == 0 {
		p.giveBack()
		return end, err
	}
	return end, w.sendListed(ctx, p, u)
}

// read reads the next page, for which p is. The first of several has the changes after it watched.
func (l *listing) read(ctx context.Context, p *parcel) (lease.WatchUpdate, pageEnd, error) {
	w := l.watch
	view, err := w.node.State.List(l.query)
	if err != nil {
		return lease.WatchUpdate{}, pageEnd{}, fmt.Errorf("%w: %w", err, lease.ErrUnavailable)
	}
	end := pageEnd{index: view.Index, now: view.Now, last: w.request.Key != "" || !view.More}
	end.whole = end.last && l.changes == nil
	l.query.After = view.Next
	u := lease.WatchUpdate{Synced: end.whole}
	for _, r := range view.Records {
		if w.request.Key == "" || r.Key == w.request.Key {
			u.Records = append(u.Records, r)
		}
	}
	if l.changes != nil {
		return u, end, nil
	}
	p.made() // as good as: it may have to wait
	if err := w.await(ctx, view.Index); err != nil {
		return u, end, err
	}
	if end.whole {
		u.Position, u.Now = w.position(view.Index), view.Now
		return u, end, nil
	}
	wants := w.wants
	wants.Renewals = true
	l.changes, err = w.feed.Watch(wants, view.Index)
	return u, end, err
}

// sendChanged sends, as parts of the listing, the records that have changed up to index.
func (l *listing) sendChanged(ctx context.Context, index uint64) error {
	w := l.watch
	if err := w.await(ctx, index); err != nil {
		return err
	}
	for {
		p, batch, err := w.next(ctx, l.changes)
		if err != nil {
			return err
		}
		u := lease.WatchUpdate{}
		for _, e := range batch.Events {
			if e.Index <= index && e.Kind != lease.Expired {
				u.Records = append(u.Records, e.Record)
			}
		}
		done := !batch.More && batch.Index >= index
		switch {
		case len(u.Records) > 0:
			if err := w.sendListed(ctx, p, u); err != nil {
				return err
			}
		case p != nil:
			p.giveBack()
		}
		if done {
			return nil
		}
	}
}

// sendEnd says that the listing is complete.
func (l *listing) sendEnd(ctx context.Context, end pageEnd) error {
	p, err := l.watch.take(ctx, size{smallBytes, smallBytes})
	if err != nil {
		return err
	}
	return l.watch.sendListed(ctx, p, lease.WatchUpdate{Synced: true, Position: l.watch.position(end.index), Now: end.now})
}

// sendListed sends a part of a listing, for which p is. It keeps nothing of it while it
// waits.
func (w *watch) sendListed(ctx context.Context, p *parcel, u lease.WatchUpdate) error {
	sent := u.Position
	data, err := pack(wire.UpdateToProto(u))
	if err != nil {
		p.giveBack()
		return err
	}
	if err := w.send(ctx, p, data); err != nil {
		return err
	}
	w.sent = sent
	return nil
}
