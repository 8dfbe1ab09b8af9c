package outbox

import (
	"testing"

	"github.com/jackc/pglogrepl"
)

// relation describes the table outbox as far as the tests need it.
func relation() map[uint32]*pglogrepl.RelationMessage {
	columns := []*pglogrepl.RelationMessageColumn{{Name: "id"}, {Name: "key"}, {Name: "payload"}}
	return map[uint32]*pglogrepl.RelationMessage{1: {RelationID: 1, RelationName: "outbox", Columns: columns}}
}

// insert is ("7", "k", null) into relation 1.
const insert = "I\x00\x00\x00\x01N\x00\x03" + "t\x00\x00\x00\x017" + "t\x00\x00\x00\x01k" + "n"

func TestInsertBecomesARow(t *testing.T) {
	d := decoder{relations: relation()}
	event, ok, err := d.decode([]byte(insert))
	if err != nil || !ok || event.Row == nil {
		t.Fatalf("event %+v, %v, %v", event, ok, err)
	}
	if event.Row.ID != 7 || event.Row.Key != "k" || event.Row.Payload != nil {
		t.Fatalf("row %+v", event.Row)
	}
}

func TestMessageCutShortIsAnErrorAndNoPanic(t *testing.T) {
	for n := range len(insert) {
		d := decoder{relations: relation()}
		if event, ok, err := d.decode([]byte(insert[:n])); err == nil || ok {
			t.Errorf("%d of %d bytes: event %+v, %v, %v", n, len(insert), event, ok, err)
		}
	}
}

func TestInsertThatDoesNotFitItsRelationIsAnError(t *testing.T) {
	none := decoder{relations: map[uint32]*pglogrepl.RelationMessage{}}
	if _, _, err := none.decode([]byte(insert)); err == nil {
		t.Error("a relation that was never described")
	}
	fewer := decoder{relations: relation()}
	fewer.relations[1].Columns = fewer.relations[1].Columns[:2]
	if _, _, err := fewer.decode([]byte(insert)); err == nil {
		t.Error("more values than columns")
	}
}

func TestHeadersComeWithTheRow(t *testing.T) {
	const with = "I\x00\x00\x00\x01N\x00\x03" + "t\x00\x00\x00\x017" + "t\x00\x00\x00\x01k" + "t\x00\x00\x00\x14{\"ce_id\": \"1\\u00fc\"}"
	d := decoder{relations: relation()}
	d.relations[1].Columns[2] = &pglogrepl.RelationMessageColumn{Name: "headers"}
	event, ok, err := d.decode([]byte(with))
	if err != nil || !ok || len(event.Row.Headers) != 1 || event.Row.Headers["ce_id"] != "1ü" {
		t.Fatalf("event %+v, %v, %v", event, ok, err)
	}
	if event, _, err = d.decode([]byte(insert)); err != nil || event.Row.Headers != nil {
		t.Fatalf("without headers: %+v, %v", event.Row, err)
	}
}
