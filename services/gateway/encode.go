package gateway

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// timeLayout is RFC 3339 with milliseconds, in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// appendEvent appends e as JSON, in the shape of schemas/events/usage and
// without reflection: it runs once a decision, before the answer is sent.
func appendEvent(b []byte, e *usage.Event) []byte {
	b = appendString(append(b, `{"id":`...), e.ID)
	b = append(b, `,"ts":"`...)
	b = e.TS.UTC().Truncate(time.Millisecond).AppendFormat(b, timeLayout)
	b = append(b, '"')
	b = appendOptional(b, `,"tenantId":`, e.TenantID)
	b = appendOptional(b, `,"userId":`, e.UserID)
	b = appendOptional(b, `,"applicationId":`, e.ApplicationID)
	b = appendOptional(b, `,"apiKeyHash":`, e.APIKeyHash)
	b = appendString(append(b, `,"service":`...), e.Service)
	b = appendString(append(b, `,"endpoint":`...), e.Endpoint)
	b = appendString(append(b, `,"method":`...), e.Method)
	b = appendString(append(b, `,"decision":`...), e.Decision)
	b = strconv.AppendInt(append(b, `,"statusCode":`...), int64(e.StatusCode), 10)
	b = appendOptional(b, `,"ruleId":`, e.RuleID)
	b = appendOptional(b, `,"algo":`, e.Algo)
	b = appendOptional(b, `,"reason":`, e.Reason)
	b = appendOptional(b, `,"cached":`, e.Cached)
	b = appendOptional(b, `,"reservation":`, e.Reservation)
	if e.ReservationState != nil {
		b = appendReservationState(append(b, `,"reservationState":`...), e.ReservationState)
	}
	b = strconv.AppendInt(append(b, `,"cost":`...), e.Cost, 10)
	b = appendMillis(append(b, `,"latencyMs":`...), e.LatencyMs)
	if len(e.Charges) > 0 {
		b = append(b, `,"charges":[`...)
		for i := range e.Charges {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCharge(b, &e.Charges[i])
		}
		b = append(b, ']')
	}
	b = appendString(append(b, `,"gateway":`...), e.Gateway)
	return append(b, '}')
}

func appendReservationState(b []byte, s *usage.ReservationState) []byte {
	b = strconv.AppendInt(append(b, `{"attempt":`...), s.Attempt, 10)
	b = strconv.AppendInt(append(b, `,"state":`...), s.State, 10)
	if s.EndedAt != 0 {
		b = strconv.AppendInt(append(b, `,"endedAt":`...), s.EndedAt, 10)
	}
	b = appendIntegers(b, `,"uncharged":`, s.Uncharged)
	return append(appendOptional(b, `,"record":`, s.Record), '}')
}

func appendCharge(b []byte, c *usage.Charge) []byte {
	b = appendString(append(b, `{"counter":`...), c.Counter)
	b = appendString(append(b, `,"metric":`...), c.Metric)
	b = strconv.AppendInt(append(b, `,"amount":`...), c.Amount, 10)
	b = strconv.AppendInt(append(b, `,"consumed":`...), c.Consumed, 10)
	b = strconv.AppendInt(append(b, `,"refunded":`...), c.Refunded, 10)
	if c.Forfeited != 0 {
		b = strconv.AppendInt(append(b, `,"forfeited":`...), c.Forfeited, 10)
	}
	if c.Carried != nil {
		b = strconv.AppendInt(append(b, `,"carried":`...), *c.Carried, 10)
	}
	if c.Limit != nil {
		b = strconv.AppendInt(append(b, `,"limit":`...), *c.Limit, 10)
	}
	if c.Pending {
		b = append(b, `,"pending":true`...)
	}
	if c.Refund {
		b = append(b, `,"refund":true`...)
	}
	if t := c.Thresholds; t != nil {
		b = append(b, `,"thresholds":{`...)
		b = appendIntegers(b, `"percent":`, t.Percent)
		if len(t.Percent) > 0 && len(t.Absolute) > 0 {
			b = append(b, ',')
		}
		b = append(appendIntegers(b, `"absolute":`, t.Absolute), '}')
	}
	return append(b, '}')
}

// appendIntegers appends a named list, or nothing of an empty one.
func appendIntegers(b []byte, name string, list []int64) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(append(b, name...), '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ']')
}

func appendOptional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, name...), value)
}

// appendMillis writes whole microseconds; finer is noise.
func appendMillis(b []byte, ms float64) []byte {
	if math.IsNaN(ms) || math.IsInf(ms, 0) || ms < 0 {
		ms = 0 // a clock that jumped; JSON has no word for the first two
	}
	return strconv.AppendFloat(b, math.Round(ms*1000)/1000, 'f', -1, 64)
}

// appendString appends s as a JSON string. Plain ASCII, which nearly all is,
// is copied; the rest goes through encoding/json, which also replaces invalid
// UTF-8.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always has a JSON form
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
