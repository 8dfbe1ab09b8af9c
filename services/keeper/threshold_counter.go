package keeper

import (
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// kindsByLetter are the kinds of subject by their letter in keys
// (schemas/redis/KEYS.md).
var kindsByLetter = map[string]string{
	"t": rules.SubjectTenant, "u": rules.SubjectUser, "a": rules.SubjectApplication,
	"k": rules.SubjectAPIKey, "s": rules.SubjectService, "e": rules.SubjectEndpoint,
}

// shadowAlgorithm marks counters that only shadow rules charge.
const shadowAlgorithm = quotaWord + "-shadow"

// shadowed reports such a counter. Its algorithm is the fourth part behind the
// tag; a metric may have the same name.
func shadowed(counter string) bool {
	if !strings.Contains(counter, shadowAlgorithm) {
		return false
	}
	_, rest, _ := strings.Cut(counter, "}:")
	parts := strings.SplitN(rest, ":", 5)
	return len(parts) > 3 && parts[3] == shadowAlgorithm
}

// subjectOf is whose use a counter counts, as rules write it.
func subjectOf(counter string) rules.Subject {
	tag, rest, ok := strings.Cut(counter, "}:")
	if !ok {
		return rules.Subject{Value: counter}
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

// unescaped resolves a part's percent escapes. What Postgres cannot hold as text
// is replaced: one such name would keep every other counter out.
func unescaped(part string) string {
	plain, err := url.PathUnescape(part)
	if err != nil {
		return part
	}
	return strings.ReplaceAll(strings.ToValidUTF8(plain, "\uFFFD"), "\x00", "\uFFFD")
}

// calendarOf is the calendar and the period's id, such as month:202607; empty
// for a wallet.
func calendarOf(counter string) string {
	if periodOf(counter) == "" {
		return ""
	}
	parts := strings.Split(counter, ":")
	return strings.Join(parts[len(parts)-afterQuota:], ":")
}
