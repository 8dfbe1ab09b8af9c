package redisstore

// queue holds parts until a lane takes them, those of each owner in the order
// they came in, and the owners in turn, one part each: whoever sends more than
// fits in a call waits behind itself. Its user holds the lock.
type queue struct {
	length int
	// turns are the owners who have parts here; first is the one whose turn it
	// is, the others follow.
	turns       map[int]*turn
	first, last *turn
	spare       *turn // for the next owner
}

// turn is one owner's parts.
type turn struct {
	owner       int
	length      int
	first, last *part
	next        *turn
}

func newQueue() queue { return queue{turns: map[int]*turn{}} }

// waits is how many parts of an owner wait.
func (q *queue) waits(owner int) int {
	if t := q.turns[owner]; t != nil {
		return t.length
	}
	return 0
}

func (q *queue) add(p *part) {
	t := q.turns[p.owner]
	if t == nil {
		if t = q.spare; t == nil {
			t = new(turn)
		}
		q.spare = t.next
		*t = turn{owner: p.owner, first: p}
		q.turns[p.owner] = t
		q.append(t)
	} else {
		t.last.next = p
	}
	t.last = p
	t.length++
	q.length++
}

func (q *queue) append(t *turn) {
	t.next = nil
	if q.first == nil {
		q.first = t
	} else {
		q.last.next = t
	}
	q.last = t
}

// What became of a part that was offered.
type offer int

const (
	refused offer = iota // there is no room for it
	placed
	gone // nobody waits for it any longer; it must not be touched again
)

// take offers parts until none is left or there is no room for the one whose
// turn it is. An owner's turn is one part, or where calls are of one owner
// alone, as many as find room.
func (q *queue) take(whole bool, place func(*part) offer) {
	for q.first != nil {
		t := q.first
		took := t.take(q, whole, place)
		if t.first != nil && !took {
			return
		}
		if q.first = t.next; q.first == nil {
			q.last = nil
		}
		if t.first != nil {
			q.append(t)
			continue
		}
		delete(q.turns, t.owner)
		*t = turn{next: q.spare}
		q.spare = t
	}
}

// take is one owner's turn; it reports whether any part found room.
func (t *turn) take(q *queue, whole bool, place func(*part) offer) (took bool) {
	for t.first != nil && (whole || !took) {
		p, next := t.first, t.first.next
		p.next = nil
		switch place(p) {
		case refused:
			p.next = next
			return took
		case placed:
			took = true
		}
		t.first = next
		t.length--
		q.length--
	}
	return took
}
