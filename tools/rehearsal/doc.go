// Package rehearsal plays the days on which a cache is tried, on a copy of its keys, and says which of them would have
// stampeded, with the settings of today, with a plain cache that coalesces nothing, and with those that it proposes.
//
//	r, err := rehearsal.New(rehearsal.Plan{Redis: options, Rate: 2000, Keys: keys})
//	report, err := r.Run(ctx)
//
// # Model
//
// A [Plan] names the keys, how often each is read, how long its load takes and for how long its value is good. A run is
// a [Scenario] under a [Protection]: so many nodes, each a [cache.Cache] with connections of its own, read the keys at
// the plan's rate, open loop, by their weights, while the scenario breaks something. The source is a stand-in that
// takes the loads' measured time, however many ask at once: that flatters whatever asks often. TTLs are shortened so
// that keys expire within a run; load times and stale limits are not.
//
// # Invariants
//
//   - Nothing of the deployment is read or changed: every key in Redis is under a prefix of this rehearsal alone, and
//     expires by itself within minutes. Run deletes them all before it returns, however it ends.
//   - The source of the deployment is never asked.
//   - The plain cache has nothing in Redis: it is in this process, shared by the nodes.
//   - A run in which Redis went away, or lost the copy, is not reported: keys would seem to stampede.
//   - A read's time counts from when it was due. One that a run's end cut off counts with the time it had waited.
//
// Fed by sluice cache rehearse, and by programs of others that know their keys.
package rehearsal
