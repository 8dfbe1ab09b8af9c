// Package elasticsearch holds what Sluice tells Elasticsearch or OpenSearch
// about its documents: the index template of usage events.
//
// # Choices
//
//   - dynamic is false: fields of newer events are kept in the document and
//     not refused, but not searchable until the template knows them.
//   - charges is an object, not nested: a search for a metric or counter finds
//     the event; which amount belongs to which counter is read from the
//     document. Kibana can show it that way.
//   - one shard a day and a replica where a second node is.
//
// The indexer installs it before its first document; the control plane
// searches by it.
package elasticsearch
