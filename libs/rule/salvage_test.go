package rule

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// future is a rule of an algorithm that this build does not know.
func future(more string) string {
	return `{"id":"f","version":9,"subject":{"kind":"tenant","value":"*"},"metric":"m","limit":{"algorithm":"ofTheFuture","limit":{"a":1}},"onStoreLoss":"closed"` + more + `}`
}

func TestSalvageReadsWhomARuleConcerns(t *testing.T) {
	t.Parallel()
	why := errors.New("limit.algorithm is new")
	for text, ok := range map[string]bool{
		future(``): true,
		future(`,"mode":"shadow","colour":"red"`):                 true,
		future(`,"scope":{"service":"demo","endpoint":"GET /x"}`): true,
		future(`,"mode":"someday"`):                               false,
		future(`,"onMissing":"someday"`):                          false,
		future(`,"onStoreLoss":"someday"`):                        false,
		future(`,"onStoreLoss":""`):                               false,
		future(`,"validUntil":"someday"`):                         false,
		future(`,"subject":{"kind":"planet","value":"*"}`):        false,
		future(`,"scope":{"service":"demo","endpoint":"/{x"}`):    false,
		future(`,"metric":"of the future"`):                       false,
		`{`:                                                       false,
	} {
		c, got := Salvage([]byte(text), why)
		if got != ok || ok && (c.ID != "f" || c.Version != 9 || c.Unreadable != why.Error() || c.OnStoreLoss != "closed") {
			t.Errorf("%s: %+v, %t", text, c, got)
		}
	}
}

// A stand-in wins where the rule might, beside every other rule; only an
// unlimited one lifts it. It is off, early and elsewhere as any rule.
func TestSalvagedRulesAreMatched(t *testing.T) {
	t.Parallel()
	ix := New()
	put := func(text string) {
		t.Helper()
		c, err := Decode([]byte(text))
		if err != nil {
			ok := false
			if c, ok = Salvage([]byte(text), err); !ok {
				t.Fatal(err)
			}
		}
		ix.PutCompiled(c)
	}
	put(future(``))
	put(strings.Replace(future(`,"scope":{"service":"other"}`), `"f"`, `"elsewhere"`, 1))
	put(strings.Replace(future(`,"mode":"off"`), `"f"`, `"off"`, 1))
	put(strings.Replace(future(``), `"f"`, `"twin"`, 1))
	put(`{"id":"rate","subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":{"algorithm":"gcra","limit":1,"window":"1m"}}`)
	put(`{"id":"free","subject":{"kind":"tenant","value":"vip"},"metric":"m","unlimited":true}`)
	for tenant, want := range map[string]string{"acme": "rate f twin", "vip": "free"} {
		req := Request{TenantID: tenant, Service: "demo", Method: "GET", Path: "/x", Now: time.Now()}
		var got []string
		for _, m := range ix.Match(&req, nil) {
			got = append(got, m.Rule.ID)
		}
		if len(got) != len(strings.Fields(want)) || got[0] != strings.Fields(want)[0] {
			t.Errorf("%s: %v, want %s", tenant, got, want)
		}
		for _, e := range ix.Explain(&req).Considered {
			if unreadable := e.Rule.Unreadable != ""; unreadable && tenant == "acme" && (e.Result == ResultWon || e.Result == ResultUnreadable && e.Because == "") {
				t.Errorf("%s: %+v", tenant, e)
			}
		}
	}
}
