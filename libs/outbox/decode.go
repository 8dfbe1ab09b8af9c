package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"
)

// decoder turns pgoutput messages (protocol version 1: whole transactions, in
// commit order) into events.
// https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
type decoder struct {
	relations   map[uint32]*pglogrepl.RelationMessage
	open        bool // between Begin and Commit
	committedAt time.Time
}

// decode returns the event the message amounts to, if it does.
func (d *decoder) decode(data []byte) (Event, bool, error) {
	message, err := parse(data)
	if err != nil {
		return Event{}, false, err
	}
	switch m := message.(type) {
	case *pglogrepl.BeginMessage:
		d.open, d.committedAt = true, m.CommitTime
	case *pglogrepl.CommitMessage:
		d.open = false
		return Event{Position: m.TransactionEndLSN}, true, nil
	case *pglogrepl.RelationMessage:
		d.relations[m.RelationID] = m
	case *pglogrepl.InsertMessage:
		row, err := d.row(m)
		if err != nil {
			return Event{}, false, err
		}
		return Event{Row: row}, true, nil
	}
	return Event{}, false, nil
}

// parse turns the library's panics on a message that is cut short into errors:
// they end a session, not the process with all its other rooms.
func parse(data []byte) (m pglogrepl.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("malformed message: %v", p)
		}
	}()
	if len(data) == 0 {
		return nil, errors.New("empty message")
	}
	return pglogrepl.Parse(data)
}

func (d *decoder) row(m *pglogrepl.InsertMessage) (*Row, error) {
	relation, known := d.relations[m.RelationID]
	if !known {
		return nil, fmt.Errorf("insert into relation %d, which was not described", m.RelationID)
	}
	if len(m.Tuple.Columns) != len(relation.Columns) {
		return nil, fmt.Errorf("%d values for %d columns of %s", len(m.Tuple.Columns), len(relation.Columns), relation.RelationName)
	}
	row := &Row{CommittedAt: d.committedAt}
	for i, column := range relation.Columns {
		value := m.Tuple.Columns[i]
		if value.DataType != pglogrepl.TupleDataTypeText {
			continue // null: only payload and headers may be
		}
		var err error
		switch column.Name {
		case "id":
			row.ID, err = strconv.ParseInt(string(value.Data), 10, 64)
		case "topic":
			row.Topic = string(value.Data)
		case "key":
			row.Key = string(value.Data)
		case "version":
			row.Version, err = strconv.ParseInt(string(value.Data), 10, 64)
		case "payload":
			row.Payload = value.Data
			if row.Payload == nil {
				row.Payload = []byte{} // empty is not null
			}
		case "headers":
			err = json.Unmarshal(value.Data, &row.Headers)
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
	}
	return row, nil
}
