// Package elasticsearch holds what Sluice tells Elasticsearch or OpenSearch
// about its documents: the index template of usage events.
//
// # Choices
//
//   - dynamic is false: fields of newer events are kept in the document and
//     not refused, but not searchable until the template knows them.
//   - charges is nested, so that each amount can be summed with the counter it
//     belongs to, and is in its event too, since Kibana shows and searches only
//     what is there. Indices of before, where it is an object, are left out of
//     sums.
//   - one shard a day and a replica where a second node is.
//
// The indexer installs it before its first document; the control plane
// searches by it.
package elasticsearch
