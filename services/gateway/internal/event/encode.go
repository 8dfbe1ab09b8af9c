package event

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// TimeLayout is RFC 3339 with milliseconds, in UTC.
const TimeLayout = "2006-01-02T15:04:05.000Z07:00"

// Bounds, in bytes, of what a client can make an event carry: with paths of 64 KB
// few requests would fill the spool.
const (
	MaxPath   = 1024
	MaxMethod = 32
)

// Clip shortens ASCII text (a cleaned path, a method) to n bytes.
func Clip(s string, n int) string { return s[:min(len(s), n)] }

// Append appends e as JSON, in the shape of schemas/events/usage and
// without reflection: it runs once a decision, before the answer is sent.
func Append(b []byte, e *usage.Event) []byte {
	b = AppendString(append(b, `{"id":`...), e.ID)
	b = append(b, `,"ts":"`...)
	b = e.TS.UTC().Truncate(time.Millisecond).AppendFormat(b, TimeLayout)
	b = append(b, '"')
	b = AppendOptional(b, `,"tenantId":`, e.TenantID)
	b = AppendOptional(b, `,"userId":`, e.UserID)
	b = AppendOptional(b, `,"applicationId":`, e.ApplicationID)
	b = AppendOptional(b, `,"apiKeyHash":`, e.APIKeyHash)
	b = AppendString(append(b, `,"service":`...), e.Service)
	b = AppendString(append(b, `,"endpoint":`...), e.Endpoint)
	b = AppendString(append(b, `,"method":`...), e.Method)
	b = AppendString(append(b, `,"decision":`...), e.Decision)
	b = strconv.AppendInt(append(b, `,"statusCode":`...), int64(e.StatusCode), 10)
	b = AppendOptional(b, `,"ruleId":`, e.RuleID)
	b = AppendOptional(b, `,"algo":`, e.Algo)
	b = AppendOptional(b, `,"reason":`, e.Reason)
	b = AppendOptional(b, `,"cached":`, e.Cached)
	b = AppendOptional(b, `,"reservation":`, e.Reservation)
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
	b = AppendString(append(b, `,"gateway":`...), e.Gateway)
	return append(b, '}')
}

func appendReservationState(b []byte, s *usage.ReservationState) []byte {
	b = strconv.AppendInt(append(b, `{"attempt":`...), s.Attempt, 10)
	b = strconv.AppendInt(append(b, `,"state":`...), s.State, 10)
	if s.EndedAt != 0 {
		b = strconv.AppendInt(append(b, `,"endedAt":`...), s.EndedAt, 10)
	}
	b = appendIntegers(b, `,"uncharged":`, s.Uncharged)
	return append(AppendOptional(b, `,"record":`, s.Record), '}')
}

func appendCharge(b []byte, c *usage.Charge) []byte {
	b = AppendString(append(b, `{"counter":`...), c.Counter)
	b = AppendString(append(b, `,"metric":`...), c.Metric)
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

// AppendOptional appends a named string, or nothing of an empty one.
func AppendOptional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return AppendString(append(b, name...), value)
}

// appendMillis writes whole microseconds; finer is noise.
func appendMillis(b []byte, ms float64) []byte {
	if math.IsNaN(ms) || math.IsInf(ms, 0) || ms < 0 {
		ms = 0 // a clock that jumped; JSON has no word for the first two
	}
	return strconv.AppendFloat(b, math.Round(ms*1000)/1000, 'f', -1, 64)
}

// AppendString appends s as a JSON string. Plain ASCII, which nearly all is,
// is copied; the rest goes through encoding/json, which also replaces invalid
// UTF-8.
func AppendString(b []byte, s string) []byte {
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
