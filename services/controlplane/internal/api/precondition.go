package api

import (
	"net/http"
	"strconv"
	"strings"
)

// Precondition is what a write demands of the row it meets (RFC 9110, 13.1).
type Precondition struct {
	// Create: the row must not be there (If-None-Match: *).
	Create bool
	// Post: the same, asked for by POST, whose refusal is 409 and not 412.
	Post bool
	// Any: the row must be there, in any version (If-Match: *).
	Any bool
	// Either: the row may be there or not, for writes whose row is settled by
	// another lock.
	Either bool
	// MayCreate: the same write would create with If-None-Match: *, which
	// refusals say.
	MayCreate bool
	// Versions: the row must be there in one of these.
	Versions []int64
}

// ETag writes a version as a strong entity tag.
func ETag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// ParsePrecondition reads the two headers. A write without either is refused:
// whoever writes must say which version they saw.
func ParsePrecondition(ifMatch, ifNoneMatch string, mayCreate bool) (Precondition, *Problem) {
	ifMatch, ifNoneMatch = strings.TrimSpace(ifMatch), strings.TrimSpace(ifNoneMatch)
	switch {
	case ifMatch != "" && ifNoneMatch != "":
		return Precondition{}, Invalid(FieldError{"header", "If-None-Match", "must not be sent together with If-Match"})
	case ifNoneMatch != "" && (!mayCreate || ifNoneMatch != "*"):
		return Precondition{}, Invalid(FieldError{"header", "If-None-Match", "must be * (create if absent) on PUT, and is nothing else here"})
	case ifNoneMatch == "*":
		return Precondition{Create: true}, nil
	case ifMatch == "":
		detail := "send If-Match with the ETag that GET answered, or * for any version"
		if mayCreate {
			detail += "; or, to create what is not there yet, If-None-Match: *"
		}
		return Precondition{}, NewProblem(http.StatusPreconditionRequired, "precondition-required", detail)
	case ifMatch == "*":
		return Precondition{Any: true, MayCreate: mayCreate}, nil
	}
	p, wrong := parseTags(ifMatch)
	p.MayCreate = mayCreate
	return p, wrong
}

// parseTags reads a list of entity tags. A tag of another server, or a weak
// one, is well-formed and simply matches nothing.
func parseTags(list string) (Precondition, *Problem) {
	var p Precondition
	for tag := range strings.SplitSeq(list, ",") {
		tag = strings.TrimSpace(tag)
		opaque := strings.TrimPrefix(tag, "W/")
		if len(opaque) < 2 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' {
			return Precondition{}, Invalid(FieldError{"header", "If-Match", `must be an ETag in quotes such as "17", or *`})
		}
		if v, err := strconv.ParseInt(opaque[1:len(opaque)-1], 10, 64); err == nil && opaque == tag {
			p.Versions = append(p.Versions, v)
		}
	}
	return p, nil
}

// Holds judges the row that was found; version 0 says that there is none.
func (p Precondition) Holds(version int64) *Problem {
	if p.Either || p.Create && version == 0 {
		return nil
	}
	if p.Post {
		return NewProblem(http.StatusConflict, "already-exists", "already exists, in version "+ETag(version))
	}
	if p.Create {
		return preconditionFailed("already exists, in version " + ETag(version))
	}
	if version == 0 {
		missing := NotFound()
		if p.MayCreate {
			missing.Detail += " to replace; If-None-Match: * in place of If-Match creates it"
		}
		return missing
	}
	if p.Any {
		return nil
	}
	for _, v := range p.Versions {
		if v == version {
			return nil
		}
	}
	return preconditionFailed("it was changed since; the version now is " + ETag(version))
}

func preconditionFailed(detail string) *Problem {
	return NewProblem(http.StatusPreconditionFailed, "precondition-failed", detail)
}

func NotFound() *Problem {
	return NewProblem(http.StatusNotFound, "not-found", "there is nothing by this id")
}
