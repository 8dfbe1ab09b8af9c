package servertest

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Uncommitted is how many records of a topic a consumer group has not committed.
func Uncommitted(t testing.TB, client *kgo.Client, topic, group string) (left int64) {
	t.Helper()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := admin.FetchOffsets(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		left += o.Offset
		if c, ok := committed.Lookup(o.Topic, o.Partition); ok {
			left -= max(0, c.At)
		}
	})
	return left
}
