package outbox

import (
	"errors"
	"testing"
)

func TestMessagesThatCouldNeverBeCarriedAreRefused(t *testing.T) {
	good := Message{Topic: "t", Key: "k", Version: 1}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Message){
		"no topic":                func(m *Message) { m.Topic = "" },
		"no key":                  func(m *Message) { m.Key = "" },
		"NUL in key":              func(m *Message) { m.Key = "a\x00b" },
		"no version":              func(m *Message) { m.Version = 0 },
		"header without a name":   func(m *Message) { m.Headers = map[string]string{"": "x"} },
		"header that holds a NUL": func(m *Message) { m.Headers = map[string]string{"a": "x\x00"} },
	} {
		m := good
		spoil(&m)
		// tx is nil: a message that is refused never reaches it.
		if err := Append(t.Context(), nil, m); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}
