package reserve

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
)

// ChargeID identifies the making of a reservation, ahead of it.
func ChargeID(r *Record) string { return stepID(r, Reserved, r.ReservedAt()) }

// endNews tells of an end, and what the counters said to it.
func endNews(r Reservation, h *heard) News {
	news := News{Reservation: r, Step: r.State, ID: stepID(r.Record, r.State, r.EndedAt), At: r.EndedAt}
	for i := range r.Charges {
		c := &r.Charges[i]
		if units := c.due(r.State, r.Committed) - c.Cost; units != 0 && !h.never[i] {
			news.Amounts = append(news.Amounts, Amount{Charge: c, Units: units, State: h.states[i]})
		}
	}
	news.uncharged = h.uncharged()
	return news
}

// chargeNews tells of a charge whose own gateway did not come to.
func chargeNews(r Reservation, h *heard) News {
	news := News{Reservation: r, Step: Reserved, ID: ChargeID(r.Record), At: r.ReservedAt()}
	for i := range r.Charges {
		if c := &r.Charges[i]; c.Cost != 0 && !h.never[i] {
			news.Amounts = append(news.Amounts, Amount{Charge: c, Units: c.Cost})
		}
	}
	news.uncharged = h.uncharged()
	return news
}

// Kept is what brings a reservation that was just made back to a store that has
// lost it.
func (m *Made) Kept() Kept {
	k := Kept{Tenant: m.Tenant, ID: m.ID, Attempt: m.At, Number: int64(Reserved), Record: m.encode()}
	for i := range m.Charges {
		if m.Charges[i].Shadow && !m.Decision.States[i].Allowed {
			k.Uncharged = append(k.Uncharged, i)
		}
	}
	return k
}

// stepID is a UUIDv7 (RFC 9562, section 5.7) of the step's time whose other bits
// follow from what step it is of what attempt: the same whoever works it out.
func stepID(r *Record, s State, at time.Time) string {
	sum := sha256.Sum256([]byte(r.Tenant + "\x00" + r.ID + "\x00" + strconv.FormatInt(r.At, 10) + "\x00" + s.String()))
	var u [16]byte
	copy(u[:], sum[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli())) //nolint:gosec // of this century
	copy(u[:6], ms[2:])
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	t := hex.EncodeToString(u[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}
