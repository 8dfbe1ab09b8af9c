package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Message is one record on its way to Kafka.
type Message struct {
	// Topic is the topic's name in the registry, without deployment prefix.
	Topic string
	// Key is the record key: valid UTF-8 without NUL, not empty.
	Key string
	// Payload is the record's value, UTF-8 text without NUL; nil deletes the
	// key. For a compacted topic it must be byte-equal to the payload column
	// of the topic's view.
	Payload []byte
	// Version comes from nextval('sluice_version').
	Version int64
	// Headers are the record's, besides the relay's own; may be nil. Names and
	// values are UTF-8 without NUL.
	Headers map[string]string
}

// ErrInvalid is wrapped by Append's error for a message that could never be
// carried.
var ErrInvalid = errors.New("message cannot be carried")

func (m Message) check() error {
	switch {
	case m.Topic == "":
		return fmt.Errorf("%w: no topic", ErrInvalid)
	case m.Key == "" || strings.ContainsRune(m.Key, 0):
		return fmt.Errorf("%w: key is empty or holds a NUL", ErrInvalid)
	case m.Version <= 0:
		return fmt.Errorf("%w: version %d is not from sluice_version", ErrInvalid, m.Version)
	}
	for name, value := range m.Headers {
		if name == "" || strings.ContainsRune(name+value, 0) {
			return fmt.Errorf("%w: a header has no name or holds a NUL", ErrInvalid)
		}
	}
	return nil
}

// Append writes the message into the outbox as part of tx. It is carried
// when, and only if, tx commits.
func Append(ctx context.Context, tx pgx.Tx, m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	var payload *string
	if m.Payload != nil {
		text := string(m.Payload)
		payload = &text
	}
	var headers *string
	if len(m.Headers) > 0 {
		encoded, err := json.Marshal(m.Headers)
		if err != nil {
			return fmt.Errorf("encode headers for outbox: %w", err)
		}
		headers = new(string(encoded))
	}
	_, err := tx.Exec(ctx, `INSERT INTO outbox (topic, key, version, payload, headers) VALUES ($1, $2, $3, $4, $5::jsonb)`,
		m.Topic, m.Key, m.Version, payload, headers)
	if err != nil {
		return fmt.Errorf("append to outbox: %w", err)
	}
	return nil
}
