package reserve

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/rule"
)

// MaxID is the longest id, in bytes.
const MaxID = 128

// ValidID reports whether an id may name a reservation: 1 to MaxID letters, digits
// and . _ ~ - of ASCII, but neither . nor .., which no path can name (RFC 3986,
// section 5.2.4): nobody could end it.
func ValidID(id string) bool {
	if id == "" || id == "." || id == ".." || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '~', c == '-':
		default:
			return false
		}
	}
	return true
}

// Times that records and numbers are kept for.
const (
	// keepEnded is for repeats of what ended a reservation; an id may be used anew
	// afterwards.
	keepEnded = 24 * time.Hour
	// keepOpen is for those that nobody has swept.
	keepOpen = 30 * 24 * time.Hour
)

// dueShards spread the index of what falls due over a Cluster.
const dueShards = 16

// name is whose reservation, and which.
type name struct{ tenant, id string }

// Keys without the deployment's prefix.

func (n name) state() string     { return rule.TenantTag(n.tenant) + ":reservation:" + n.id }
func (n name) attempt() string   { return n.state() + ":at" }
func (n name) end() string       { return n.state() + ":end" }
func (n name) records() string   { return rule.TenantTag(n.tenant) + ":reserved:" + n.id }
func (n name) places() string    { return rule.TenantTag(n.tenant) + ":reservations" }
func (n name) shard() string     { return dueKey(n.shardNumber()) }
func dueKey(shard int) string    { return "{due-" + strconv.Itoa(shard) + "}:reservations" }
func field(attempt int64) string { return strconv.FormatInt(attempt, 10) }

// toldField of the records says that the charge was told of.
const toldField = "told"

func (n name) shardNumber() int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.tenant + "/" + n.id))
	return int(h.Sum32() % dueShards)
}

// entry is an attempt as the index of what falls due names it.
type entry struct {
	name
	attempt int64
}

func (e entry) String() string { return field(e.attempt) + "|" + e.id + "|" + e.tenant }

func parseEntry(text string) (entry, error) {
	at, rest, _ := strings.Cut(text, "|")
	id, tenant, ok := strings.Cut(rest, "|")
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || !ValidID(id) {
		return entry{}, fmt.Errorf("%q is no entry of what falls due", text)
	}
	return entry{name{tenant, id}, n}, nil
}

// follower is a group of an attempt's charges that is charged apart from the
// tenant's slot: a slot's, or one counter of a shadow rule.
type follower struct {
	key    string // of its number
	shadow bool
	places []int // in Record.Charges
}

// Numbers of followers.
const (
	followerCharged = 1
	followerEnded   = 2
	followerNever   = 3 // a shadow rule's, told of as not charged
)

// split tells the charges that the tenant's slot decides from those that follow.
func split(client redis.UniversalClient, r *Record) (deciding []int, followers []follower) {
	tag := rule.TenantTag(r.Tenant)
	for i := range r.Charges {
		c := &r.Charges[i]
		if !c.Shadow && redisstore.Together(client, tag, c.Key) {
			deciding = append(deciding, i)
			continue
		}
		joined := false
		for j := range followers {
			f := &followers[j]
			if !c.Shadow && !f.shadow && redisstore.Together(client, f.key, c.Key) {
				f.places, joined = append(f.places, i), true
				break
			}
		}
		if !joined {
			key := fmt.Sprintf("%s:reservation:%s:%s:%d:%d", tagOf(c.Key), strings.Trim(tag, "{}"), r.ID, r.At, i)
			followers = append(followers, follower{key: key, shadow: c.Shadow, places: []int{i}})
		}
	}
	return deciding, followers
}

// tagOf is a counter's hash tag, braces included.
func tagOf(key string) string { return key[:strings.IndexByte(key, '}')+1] }
