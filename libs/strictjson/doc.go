// Package strictjson decodes JSON that people write, and says of each mistake
// where it is and what would be right.
//
// encoding/json names at most one mistake, matches field names in any case,
// takes the last of two equal fields and puts U+FFFD in place of invalid
// UTF-8 and of half a surrogate pair. Here all of these are refused, every
// mistake of a document is named at once by its path (limit.window,
// upstreams[1].url), and a string with a NUL is a mistake too, since
// PostgreSQL's jsonb cannot hold one. Times are RFC 3339's and no others: each
// that passes can be written again, in UTC too.
//
// Judge adds the mistakes of what a document means to those of its form, but
// for those that only follow from them.
//
// The control plane decodes request bodies with it, the client its rule
// files; both therefore say the same of the same mistake. What a well-typed
// document means is judged elsewhere (libs/rule, libs/catalog).
package strictjson
