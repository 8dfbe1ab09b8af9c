package rule

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// numShards makes a change at a million rules copy about a thousand.
const numShards = 1024

// bucketKey finds the rules of one exact value, or of one tenant/*: name is
// then empty and wide true.
type bucketKey struct {
	owner, name string
	kind        kind
	wide        bool
}

type bucketMap map[bucketKey][]*Compiled

// wildcards holds the rules with value *, of the global scope and of services.
type wildcards struct {
	global    [numKinds][]*Compiled
	byService map[string]*[numKinds][]*Compiled
}

// table is what Match reads. Maps and slices within it are immutable: a writer
// (one at a time) copies a shard or the wildcards, and swaps the pointer.
type table struct {
	seed   maphash.Seed
	shards [numShards]atomic.Pointer[bucketMap]
	wild   atomic.Pointer[wildcards]
	// present counts rules by kind and exactness, to spare look-ups in vain.
	present [numKinds][formAny]atomic.Int64
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	empty := bucketMap{}
	for i := range t.shards {
		t.shards[i].Store(&empty)
	}
	t.wild.Store(&wildcards{byService: map[string]*[numKinds][]*Compiled{}})
	return t
}

func (t *table) shardOf(k *bucketKey) *atomic.Pointer[bucketMap] {
	h := maphash.String(t.seed, k.owner)*31 + maphash.String(t.seed, k.name)
	return &t.shards[(h^h>>32)%numShards]
}

func (t *table) bucket(k bucketKey) []*Compiled {
	form := formExact
	if k.wide {
		form = formTenantWide
	}
	if t.present[k.kind][form].Load() == 0 {
		return nil
	}
	return (*t.shardOf(&k).Load())[k]
}

// bucketKeys returns where a rule with an exact value or tenant/* lies. An
// endpoint's value may be read in more than one way (see splits).
func bucketKeys(c *Compiled) []bucketKey {
	k, value := c.group.kind, c.Subject.Value
	switch k {
	case kindUser, kindApplication:
		owner, name, _ := strings.Cut(value, "/")
		if c.form == formTenantWide {
			return []bucketKey{{kind: k, owner: owner, wide: true}}
		}
		return []bucketKey{{kind: k, owner: owner, name: name}}
	case kindEndpoint:
		var keys []bucketKey
		for service, pattern := range splits(value) {
			if p, err := route.Parse(pattern); err == nil {
				keys = append(keys, bucketKey{kind: k, owner: service, name: p.String()})
			}
		}
		return keys
	}
	return []bucketKey{{kind: k, owner: value}}
}

// swap puts c where old was; either may be nil, and off rules are as nil. The
// new one is there before the old one goes: a request may see both, in which
// case one wins, but never neither.
func (t *table) swap(old, c *Compiled) {
	if c != nil && c.Mode != rules.ModeOff {
		t.edit(c, 1, func(list []*Compiled) []*Compiled {
			next := slices.DeleteFunc(slices.Clone(list), func(o *Compiled) bool { return o == old })
			return append(next, c)
		})
	}
	if old != nil && old.Mode != rules.ModeOff {
		t.edit(old, -1, func(list []*Compiled) []*Compiled {
			return slices.DeleteFunc(slices.Clone(list), func(o *Compiled) bool { return o == old })
		})
	}
}

func (t *table) edit(c *Compiled, n int64, change func([]*Compiled) []*Compiled) {
	if c.form == formAny {
		t.editWild(c, change)
		return
	}
	t.present[c.group.kind][c.form].Add(n)
	for _, k := range bucketKeys(c) {
		shard := t.shardOf(&k)
		last := *shard.Load()
		next := make(bucketMap, len(last)+1)
		for k, list := range last {
			next[k] = list
		}
		if list := change(last[k]); len(list) > 0 {
			next[k] = list
		} else {
			delete(next, k)
		}
		shard.Store(&next)
	}
}

func (t *table) editWild(c *Compiled, change func([]*Compiled) []*Compiled) {
	k, last := c.group.kind, t.wild.Load()
	next := &wildcards{global: last.global, byService: last.byService}
	if c.Scope.Service == "" {
		next.global[k] = change(last.global[k])
		t.wild.Store(next)
		return
	}
	next.byService = make(map[string]*[numKinds][]*Compiled, len(last.byService)+1)
	for service, lists := range last.byService {
		next.byService[service] = lists
	}
	lists := [numKinds][]*Compiled{}
	if had := last.byService[c.Scope.Service]; had != nil {
		lists = *had
	}
	lists[k] = change(lists[k])
	next.byService[c.Scope.Service] = &lists
	empty := true
	for _, list := range lists {
		empty = empty && len(list) == 0
	}
	if empty {
		delete(next.byService, c.Scope.Service)
	}
	t.wild.Store(next)
}

// load fills a table nobody reads yet, without copying.
func (t *table) load(byID map[string]*Compiled) {
	var shards [numShards]bucketMap
	index := map[*atomic.Pointer[bucketMap]]int{}
	for i := range t.shards {
		shards[i] = bucketMap{}
		index[&t.shards[i]] = i
	}
	wild := t.wild.Load()
	for _, c := range byID {
		switch {
		case c.Mode == rules.ModeOff:
		case c.form == formAny && c.Scope.Service == "":
			wild.global[c.group.kind] = append(wild.global[c.group.kind], c)
		case c.form == formAny:
			lists := wild.byService[c.Scope.Service]
			if lists == nil {
				lists = &[numKinds][]*Compiled{}
				wild.byService[c.Scope.Service] = lists
			}
			lists[c.group.kind] = append(lists[c.group.kind], c)
		default:
			t.present[c.group.kind][c.form].Add(1)
			for _, k := range bucketKeys(c) {
				m := shards[index[t.shardOf(&k)]]
				m[k] = append(m[k], c)
			}
		}
	}
	for i := range t.shards {
		t.shards[i].Store(&shards[i])
	}
}
