// Package rule says which rules are valid, and which of them apply to a request.
//
// # Model
//
// Validate judges a rule as REST takes it, Normalize fills its defaults, Carry
// completes it with what follows from the rule before it, and an Index holds
// compiled rules and overrides and answers Match: the winners of a request.
//
// All rules whose subject and scope cover the request are grouped by
// (subject.kind, metric, horizon), horizon being a rate's window, a quota's
// period, or prepaid. In each group the most specific wins: endpoint scope before service
// before global, the more specific pattern first, exact value before tenant/*
// before *, higher priority, smaller id. So a tenant and its user are counted
// apart, and 10 a second and a million a month on one metric both hold. Shadow
// rules compete among themselves, and charge counters of their own.
//
// An unlimited rule may name the horizon it lifts (limit.algorithm with window
// or period). One without a limit lifts every horizon of its subject and
// metric, and counts as a monthly quota does.
//
// An override replaces the numbers of the winner of its subject and metric,
// until its date; one that names the horizon goes before one that does not.
// Prepaid quotas have no numbers of their own, and so no overrides.
//
// # Calendars
//
// Zone, anchor day and week start are no part of a horizon, but of a counter's
// identity: of two rules with different calendars the more specific wins, and
// counts in a counter of its own, so that no two calendars ever share one.
// Where a rule's calendar changes, the running period is finished by the old
// one (Carry, limit.previous), so that nothing is lost or granted twice.
//
// # Invariants
//
//   - What is counted belongs to the subject and the metric, not to the rule:
//     a counter's identity holds no rule id, no limit and no burst.
//   - Match takes no lock and allocates nothing but what dst grows by. A request
//     beside a change sees the rule before or after it, never neither.
//   - A change touches the places of one rule, and now and then copies a shard
//     (1/256) of one set.
//   - Explain judges by the code that Match judges by.
//   - A rule that cannot be compiled never replaces the last good version, and
//     disturbs no other rule.
//
// # The index
//
// Rules lie in hash sets, one for each kind, form of value and scope; the hash is
// of what a request must have to be covered: subject, service, and the literal
// segments of the pattern where there is one. Patterns of a service are found
// by one look-up a shape (route.Shape), so 5,000 of them cost what one does.
// Rules of one wording share all but their subject and numbers.
//
// Measured with a million rules on 2 shared cores of a 2.8 GHz Xeon that other
// work kept busy (go test ./rule -run '^$' -bench 'Million|Thousands' -benchmem,
// from libs; cpu-ns/op is processor time; expect less on a quiet machine):
// 285 B a rule, all included; six dimensions with seven winners 1.9 to 3 µs of
// processor time at a million and 0.6 to 1.3 µs at 3,000 rules, no allocation
// (one look-up in a Go map of a million strings took 0.1 to 0.35 µs at the time:
// the rest is memory that no cache holds); one of 5,000 patterns the same; a
// change 1.6 µs in place, 1.9 µs to another subject; a start 2.5 s of processor
// time, 1.5 of them for decoding. The aim of 0.5 µs at a million is not reached.
//
// Memory is waited for three times in a row: a slot, the rule, its text (which
// settles that it is this rule, and holds the counter's key, read next). Two
// remedies were measured against that and left out: reading the slots and rules
// of all look-ups ahead of their use gained 6 %, what the processor does not do
// by itself; a rule's fields in one line with its text beside it gained 0 to
// 15 %, less than the noise, for unsafe strings.
//
// controlplane validates with it; the gateway's tables of rules.v1 and
// overrides.v1 feed the Index and its match stage asks it. Counters go to
// libs/limit.
package rule
