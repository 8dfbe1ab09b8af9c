package reserve

import (
	"cmp"
	"context"
	"strings"
)

// Spot is where a list ended; the zero Spot is its beginning.
type Spot struct {
	// At is the member's score in its index, µs since the epoch.
	At     int64
	Member string
}

func (s Spot) compare(t Spot) int {
	return cmp.Or(cmp.Compare(s.At, t.At), strings.Compare(s.Member, t.Member))
}

// Open returns up to most reservations that are open, behind a spot of the same
// list, and the spot of the last, or the zero Spot where none is behind it. Those
// that are past their time and not swept yet are open; those that are still to be
// charged are not.
//
// A tenant's are in the order in which they fall due; one that is open while a list
// is read from its beginning to its end is on it once. With an empty tenant all of
// them are on it, by when the sweep looks at them: when they fall due, or within
// seconds while a step of theirs is under way. One whose step ends between two
// pages may be on both, or, where it is just being brought to its end, on none.
//
// Errors are the store's. One that cannot be read is logged and left out.
func (b *Book) Open(ctx context.Context, tenant string, after Spot, most int) (open []Reservation, next Spot, err error) {
	var spots []Spot // of open
	for {
		page, err := b.behind(ctx, tenant, after, most+1)
		if err != nil {
			return nil, Spot{}, err
		}
		standings, err := b.lookAll(ctx, page)
		if err != nil {
			return nil, Spot{}, err
		}
		for i := range page {
			st, e := &standings[i], page[i].entry
			if r, _ := st.reservation(e.name); r.State == Reserved && st.attempt == e.attempt {
				open, spots = append(open, r), append(spots, page[i].Spot)
			}
		}
		switch {
		case len(open) > most:
			return open[:most], spots[most-1], nil
		case len(page) <= most:
			return open, Spot{}, nil
		}
		after = page[len(page)-1].Spot
	}
}
