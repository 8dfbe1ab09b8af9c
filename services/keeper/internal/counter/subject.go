package counter

import (
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// kindsByLetter are the kinds of subject by their letter in keys.
var kindsByLetter = map[string]string{
	"t": rules.SubjectTenant, "u": rules.SubjectUser, "a": rules.SubjectApplication,
	"k": rules.SubjectAPIKey, "s": rules.SubjectService, "e": rules.SubjectEndpoint,
}

// Subject is whose use a counter counts, as rules write it.
func Subject(identity string) rules.Subject {
	tag, rest, ok := strings.Cut(identity, "}:")
	if !ok {
		return rules.Subject{Value: identity}
	}
	letter, rest, _ := strings.Cut(rest, ":")
	name, _, _ := strings.Cut(rest, ":")
	_, owner, _ := strings.Cut(tag, ":") // of {- there is none
	owner, name = unescaped(owner), unescaped(name)
	s := rules.Subject{Kind: kindsByLetter[letter], Value: owner}
	switch s.Kind {
	case rules.SubjectUser, rules.SubjectApplication:
		s.Value = owner + "/" + name
	case rules.SubjectAPIKey:
		s.Value = name
	case rules.SubjectEndpoint:
		s.Value = owner + " " + name
	}
	return s
}
