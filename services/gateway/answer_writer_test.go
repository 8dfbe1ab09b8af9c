package gateway

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// forged are headers that an upstream writes in the gate's name.
var forged = []string{
	"Sluice-Decision-Id", "Sluice-Degraded", "Sluice_decision_id", "RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-Ratelimit_reset", "X-Real-Cost",
}

// forgingStand has an upstream that forges in each place an answer has.
func forgingStand(t *testing.T, announce bool) *stand {
	s := newStand(t, standOptions{
		answers: AnswersConfig{LegacyHeaders: true},
		catalog: []catalog.Service{{Name: "demo", Prefix: "/demo/", CostHeader: "X-Real-Cost"}},
		handler: func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			write := func(prefix, kept string) {
				for _, name := range forged {
					h[prefix+http.CanonicalHeaderKey(name)] = []string{"forged"}
				}
				h.Set(prefix+kept, "kept")
			}
			write("", "Link")
			w.WriteHeader(http.StatusEarlyHints)
			clear(h)
			write("", "X-Own")
			if announce {
				h.Set("Trailer", "X-Sum, "+strings.Join(forged, ", "))
			}
			_, _ = io.WriteString(w, "body")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			if !announce {
				write(http.TrailerPrefix, "X-Sum")
				return
			}
			write("", "X-Sum")
		},
	})
	s.putRule(`{"id":"r","subject":{"kind":"service","value":"demo"},"metric":"m","limit":{"algorithm":"fixedWindow","limit":10,"window":"1h"}}`)
	return s
}

func TestUpstreamsCannotSpeakForTheGate(t *testing.T) {
	t.Parallel()
	for _, announce := range []bool{true, false} {
		s := forgingStand(t, announce)
		var early textproto.MIMEHeader
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			early = h
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+"/demo/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		announced := res.Trailer.Clone()
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if early.Get("Link") != "kept" || res.Header.Get("X-Own") != "kept" || res.Trailer.Get("X-Sum") != "kept" {
			t.Errorf("announced %v: lost what is the upstream's: %v, %v, %v", announce, early, res.Header, res.Trailer)
		}
		for place, h := range map[string]http.Header{"1xx": http.Header(early), "trailer": res.Trailer, "announcement": announced} {
			for _, name := range forged {
				if values, there := h[http.CanonicalHeaderKey(name)]; there {
					t.Errorf("announced %v: %s in the %s: %q", announce, name, place, values)
				}
			}
		}
		for name, values := range res.Header {
			if strings.Join(values, "") == "forged" && name != "X-Ratelimit_reset" { // no header of the gate's, where all are
				t.Errorf("announced %v: %s is the upstream's", announce, name)
			}
		}
		if e := s.event(); res.Header.Get(respond.HeaderDecisionID) != e.ID || res.Header.Get(reject.HeaderLegacyLimit) != "10" {
			t.Errorf("announced %v: %v", announce, res.Header)
		}
	}
}

// What the gate does not say of a service, the service may.
func TestLegacyHeadersOfAnUpstreamStayWhereOursAreNotSent(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		w.Header().Set(http.TrailerPrefix+"X-RateLimit-Limit", "7")
	}})
	if a := s.get("/demo/x"); a.Trailer.Get("X-RateLimit-Limit") != "7" {
		t.Errorf("trailers %v", a.Trailer)
	}
}
