//go:build integration

package devserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
)

func TestKafkaKeepsRecordsAcrossAKill(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servertest.StartKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(server.Brokers()...), kgo.ConsumeTopics("kept"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "kept", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		if records := fetches.Records(); len(records) > 0 {
			if got := string(records[0].Value); got != "v" {
				t.Errorf("value %q, want v", got)
			}
			return
		}
	}
}

func TestSearchKeepsDocumentsAcrossAKill(t *testing.T) {
	t.Parallel()
	server := servertest.StartSearch(t)
	const doc = `{"decision":"DENY"}`
	if status, body := send(t, http.MethodPut, server.URL()+"/kept/_doc/1", doc); status != http.StatusCreated {
		t.Fatalf("put: %d %s", status, body)
	}
	server.Kill()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, body := send(t, http.MethodGet, server.URL()+"/kept/_doc/1", ""); !strings.Contains(body, doc) {
		t.Errorf("after a kill: %s", body)
	}
}

func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}
