package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	type wrapper struct{ Password Secret }
	in := wrapper{Password: value}
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T%v"} {
		out["bare "+verb] = fmt.Sprintf(verb, in.Password)
		out["struct "+verb] = fmt.Sprintf(verb, in)
		out["pointer "+verb] = fmt.Sprintf(verb, &in.Password)
	}
	encoded, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out["json"] = string(encoded)
	text, err := in.Password.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	out["text"] = string(text)
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"slog json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var logged bytes.Buffer
		slog.New(handler(&logged)).Info("m", "secret", in.Password, "in", in)
		out[name] = logged.String()
	}
	hex := fmt.Sprintf("%x", value)
	for where, got := range out {
		if strings.Contains(got, value) || strings.Contains(got, hex) {
			t.Errorf("%s reveals the secret: %s", where, got)
		}
	}
	if got := out["json"]; got != `{"Password":"***"}` {
		t.Errorf("json %s", got)
	}
	if in.Password.Reveal() != value {
		t.Error("Reveal does not give the value")
	}
	if got := Secret("").String(); got != "" {
		t.Errorf("an empty secret prints %q, want nothing", got)
	}
}
