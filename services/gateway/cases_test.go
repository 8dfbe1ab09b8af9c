package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Group 10 a minute and route 3 a minute: five to the route leave seven in the
// group, since what the route denies charges nothing.
func TestTheRoutesDenialChargesTheGroupNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(`{"id":"group","subject":{"kind":"tenant","value":"*"},"scope":{"service":"demo"},"metric":"requests","limit":{"algorithm":"fixedWindow","limit":10,"window":"1m"}}`)
	s.putRule(`{"id":"route","subject":{"kind":"tenant","value":"*"},"scope":{"service":"demo","endpoint":"GET /demo/pay"},"metric":"pay","limit":{"algorithm":"fixedWindow","limit":3,"window":"1m"}}`)
	for i, want := range []int{200, 200, 200, 429, 429} {
		if a := s.get("/demo/pay", acme...); a.StatusCode != want {
			t.Fatalf("request %d: %d", i, a.StatusCode)
		}
	}
	for _, w := range s.explained(`{"tenantId":"acme","path":"/demo/other"}`).Winners {
		if w.ID != "group" || *w.Remaining != 7 {
			t.Errorf("%s has %d left", w.ID, *w.Remaining)
		}
	}
}

// 10 a second and 1,000 a day on one metric: both hold.
func TestARateAndAQuotaOnOneMetricHold(t *testing.T) {
	t.Parallel()
	now := noon
	s := newStand(t, standOptions{trusted: []string{loopback}, now: func() time.Time { return now }})
	s.putRule(ruleJSON("second", "tenant", "requests", `{"algorithm":"fixedWindow","limit":10,"window":"1s"}`, ""))
	s.putRule(ruleJSON("day", "tenant", "requests", `{"algorithm":"quota","kind":"renewing","limit":1000,"period":"day"}`, ""))
	passed := 0
	for range 105 {
		for range 11 {
			if a := s.get("/demo/x", acme...); a.StatusCode == http.StatusOK {
				passed++
			}
		}
		if passed == 10 { // in the first second
			if a := s.get("/demo/x", acme...); !strings.Contains(a.body, `"second"`) {
				t.Fatalf("the eleventh of a second: %s", a.body)
			}
		}
		now = now.Add(time.Second)
	}
	if a := s.get("/demo/x", acme...); passed != 1000 || !strings.Contains(a.body, `"day"`) {
		t.Errorf("%d passed, then %s", passed, a.body)
	}
}

// The minute passes and the hour denies: the 429 speaks of the hour.
func TestTheDenialSpeaksOfThePolicyThatDenied(t *testing.T) {
	t.Parallel()
	now := noon
	s := newStand(t, standOptions{trusted: []string{loopback}, now: func() time.Time { return now }})
	s.putRule(ruleJSON("minute", "tenant", "requests", `{"algorithm":"fixedWindow","limit":2,"window":"1m"}`, ""))
	s.putRule(ruleJSON("hour", "tenant", "requests", `{"algorithm":"fixedWindow","limit":3,"window":"1h"}`, ""))
	for range 3 {
		s.get("/demo/x", acme...)
		now = now.Add(time.Minute)
	}
	a := s.get("/demo/x", acme...)
	p := a.problem(t)
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.StatusCode != 429 || len(p.Violated) != 1 || p.Violated[0] != "hour" || err != nil || wait < 56*60 {
		t.Errorf("%d, violated %v, Retry-After %d", a.StatusCode, p.Violated, wait)
	}
	if policy := a.Header.Get("RateLimit"); !strings.HasPrefix(policy, `"hour"`) {
		t.Errorf("RateLimit is %s", policy)
	}
}

// An algorithm changed on one metric starts anew, without an error.
func TestAnotherAlgorithmStartsAnew(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	for _, algorithm := range []string{"gcra", "fixedWindow", "tokenBucket", "slidingWindow"} {
		s.putRule(ruleJSON("r", "tenant", "requests", `{"algorithm":"`+algorithm+`","limit":2,"window":"1h"}`, ""))
		for i, want := range []int{200, 200, 429} {
			if a := s.get("/demo/x", acme...); a.StatusCode != want {
				t.Errorf("%s, request %d: %d %s", algorithm, i, a.StatusCode, a.body)
			}
		}
	}
}
