// Package route cleans request paths and matches them against patterns in the
// syntax of net/http.ServeMux.
//
// The model: CleanPath turns any spelling of a path into one, which is matched
// and forwarded, so that a rule cannot be walked round by writing %70ay for
// pay or /x/../pay for /pay. A Pattern is METHOD /path with literal segments,
// {name} for one segment, {name...} or a trailing slash for the rest, {$} for
// the path's end; hosts are refused.
//
// Unlike ServeMux a conflict of patterns is no error: Compare is a total order
// in which a pattern that matches a strict subset of another's requests comes
// first. libs/rule orders scopes with it, the gateway endpoints of a catalog.
package route
