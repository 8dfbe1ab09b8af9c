// Package rule says which rules are valid, and which of them apply to a request.
//
// # Model
//
// Validate judges a rule as REST takes it, Normalize fills its defaults, and
// an Index holds compiled rules and answers Match: the winners of a request.
//
// All rules whose subject and scope cover the request are grouped by
// (subject.kind, metric, horizon), horizon being rate and window, or quota and
// period. In each group the most specific wins: endpoint scope before service
// before global, the more specific pattern first, exact value before tenant/*
// before *, higher priority, smaller id. So a tenant and its user are counted
// apart, and 10 a second and a million a month on one metric both hold.
//
// An unlimited rule may name the horizon it lifts (limit.algorithm with window
// or period). One without a limit lifts every horizon of its subject and
// metric, and counts as a monthly quota does.
//
// # Invariants
//
//   - What is counted belongs to the subject and the metric, not to the rule:
//     a counter's identity holds no rule id, no limit and no burst.
//   - Match takes no lock and allocates nothing but what dst grows by; a change
//     copies one shard, not the index.
//   - A rule that cannot be compiled never replaces the last good version, and
//     disturbs no other rule.
//
// controlplane validates with it; the gateway's table of rules.v1 feeds the
// Index and its match stage asks it. Counters go to libs/limit.
package rule
