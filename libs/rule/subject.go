package rule

import (
	"strings"

	"github.com/sluice-platform/sluice/libs/route"
)

// partsOf reads a value, without its *, as the parts that places are made of.
// Of an exact endpoint there may be more than one reading: endpointSubjects.
func partsOf(k kind, value string) subjectParts {
	if k.member() {
		owner, name, _ := strings.Cut(value, "/")
		return subjectParts{owner, name}
	}
	if k == kindAPIKey {
		return subjectParts{name: value}
	}
	return subjectParts{owner: value}
}

// endpointSubjects returns the ways to read a value as service and pattern.
func endpointSubjects(value string) []subjectParts {
	var all []subjectParts
	for service, pattern := range splits(value) {
		if p, err := route.Parse(pattern); err == nil {
			all = append(all, subjectParts{strings.Clone(service), p.String()})
		}
	}
	return all
}
