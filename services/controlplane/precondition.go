package controlplane

import (
	"net/http"
	"strconv"
	"strings"
)

// precondition is what a write demands of the row it meets (RFC 9110, 13.1).
type precondition struct {
	// create: the row must not be there (If-None-Match: *).
	create bool
	// post: the same, asked for by POST, whose refusal is 409 and not 412.
	post bool
	// any: the row must be there, in any version (If-Match: *).
	any bool
	// either: the row may be there or not, for writes whose row is settled by
	// another lock.
	either bool
	// mayCreate: the same write would create with If-None-Match: *, which
	// refusals say.
	mayCreate bool
	// versions: the row must be there in one of these.
	versions []int64
}

// etag writes a version as a strong entity tag.
func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// parsePrecondition reads the two headers. A write without either is refused:
// whoever writes must say which version they saw.
func parsePrecondition(ifMatch, ifNoneMatch string, mayCreate bool) (precondition, *Problem) {
	ifMatch, ifNoneMatch = strings.TrimSpace(ifMatch), strings.TrimSpace(ifNoneMatch)
	switch {
	case ifMatch != "" && ifNoneMatch != "":
		return precondition{}, invalid(FieldError{"header", "If-None-Match", "must not be sent together with If-Match"})
	case ifNoneMatch != "" && (!mayCreate || ifNoneMatch != "*"):
		return precondition{}, invalid(FieldError{"header", "If-None-Match", "must be * (create if absent) on PUT, and is nothing else here"})
	case ifNoneMatch == "*":
		return precondition{create: true}, nil
	case ifMatch == "":
		detail := "send If-Match with the ETag that GET answered, or * for any version"
		if mayCreate {
			detail += "; or, to create what is not there yet, If-None-Match: *"
		}
		return precondition{}, newProblem(http.StatusPreconditionRequired, "precondition-required", detail)
	case ifMatch == "*":
		return precondition{any: true, mayCreate: mayCreate}, nil
	}
	p, wrong := parseTags(ifMatch)
	p.mayCreate = mayCreate
	return p, wrong
}

// parseTags reads a list of entity tags. A tag of another server, or a weak
// one, is well-formed and simply matches nothing.
func parseTags(list string) (precondition, *Problem) {
	var p precondition
	for tag := range strings.SplitSeq(list, ",") {
		tag = strings.TrimSpace(tag)
		opaque := strings.TrimPrefix(tag, "W/")
		if len(opaque) < 2 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' {
			return precondition{}, invalid(FieldError{"header", "If-Match", `must be an ETag in quotes such as "17", or *`})
		}
		if v, err := strconv.ParseInt(opaque[1:len(opaque)-1], 10, 64); err == nil && opaque == tag {
			p.versions = append(p.versions, v)
		}
	}
	return p, nil
}

// holds judges the row that was found; version 0 says that there is none.
func (p precondition) holds(version int64) *Problem {
	if p.either || p.create && version == 0 {
		return nil
	}
	if p.post {
		return newProblem(http.StatusConflict, "already-exists", "already exists, in version "+etag(version))
	}
	if p.create {
		return preconditionFailed("already exists, in version " + etag(version))
	}
	if version == 0 {
		missing := notFound()
		if p.mayCreate {
			missing.Detail += " to replace; If-None-Match: * in place of If-Match creates it"
		}
		return missing
	}
	if p.any {
		return nil
	}
	for _, v := range p.versions {
		if v == version {
			return nil
		}
	}
	return preconditionFailed("it was changed since; the version now is " + etag(version))
}

func preconditionFailed(detail string) *Problem {
	return newProblem(http.StatusPreconditionFailed, "precondition-failed", detail)
}

func notFound() *Problem {
	return newProblem(http.StatusNotFound, "not-found", "there is nothing by this id")
}
