package quotaevents

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

func event() Event {
	return Event{
		SpecVersion: SpecVersion, ID: "1", Source: "/sluice/keeper", Type: TypeThresholdReached, Subject: "tenant/acme",
		Time: time.Date(2026, 7, 23, 14, 32, 7, 412e6, time.UTC), DataContentType: ContentType, Data: json.RawMessage(`{"at":1}`),
	}
}

func TestBinaryModeHoldsAllOfAnEvent(t *testing.T) {
	t.Parallel()
	e := event()
	headers := e.Headers()
	want := map[string]string{
		"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/sluice/keeper", "ce_type": "com.sluice.quota.threshold.reached.v1",
		"ce_subject": "tenant/acme", "ce_time": "2026-07-23T14:32:07.412Z", "content-type": "application/json",
	}
	if !maps.Equal(headers, want) {
		t.Fatalf("headers %v", headers)
	}
	got, err := FromRecord(func(name string) string { return headers[name] }, e.Data)
	if err != nil || !reflect.DeepEqual(got, e) {
		t.Fatalf("read again: %+v, %v", got, err)
	}
}

func TestStructuredModeHasTheNamesOfTheSpecification(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(event())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"specversion":"1.0","id":"1","source":"/sluice/keeper","type":"com.sluice.quota.threshold.reached.v1",` +
		`"subject":"tenant/acme","time":"2026-07-23T14:32:07.412Z","datacontenttype":"application/json","data":{"at":1}}`
	if string(text) != want {
		t.Fatalf("got  %s\nwant %s", text, want)
	}
}

func TestRecordThatIsNoEventIsRefused(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		headerSpecVersion: "ce_specversion", headerID: "must be given", headerSource: "must be given",
		headerType: "must be given", headerTime: "ce_time",
	} {
		headers := event().Headers()
		delete(headers, name)
		_, err := FromRecord(func(name string) string { return headers[name] }, []byte(`{}`))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	headers := event().Headers()
	if _, err := FromRecord(func(name string) string { return headers[name] }, []byte(`{`)); err == nil {
		t.Error("a value that is no JSON was taken")
	}
}
