package epoch

import (
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Names of keys beside the counters.
const (
	keyName      = "epoch"
	gatewaysName = "gateways"
)

// NumSlots is how many hash slots a Redis Cluster has.
const NumSlots = 16384

// Tag returns the part of a key that decides its slot (Redis Cluster
// specification): what is between the first { and the next }, if anything.
func Tag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}

// SlotOf returns a key's slot: CRC-16/XMODEM of its tag.
func SlotOf(key string) int {
	var crc uint16
	for _, b := range []byte(Tag(key)) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^b]
	}
	return int(crc % NumSlots)
}

var crc16 = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// slotTags has a hash tag of each slot, the first of the numbers from 0 that
// lies in it.
var slotTags = sync.OnceValue(func() *[NumSlots]string {
	var tags [NumSlots]string
	for i, found := 0, 0; found < NumSlots; i++ {
		tag := strconv.Itoa(i)
		if slot := SlotOf(tag); tags[slot] == "" {
			tags[slot] = tag
			found++
		}
	}
	return &tags
})

// Beside names a key that lies in a slot. One Redis has slot 0 only.
func Beside(prefix string, cluster bool, slot int, name string) string {
	if !cluster {
		return prefix + name
	}
	return prefix + "{" + slotTags()[slot] + "}:" + name
}

// Key names the epoch of a slot.
func Key(prefix string, cluster bool, slot int) string { return Beside(prefix, cluster, slot, keyName) }

// KeyFor names the epoch of the quotas beside a key, which is without the prefix.
func KeyFor(client redis.UniversalClient, prefix, key string) string {
	_, cluster := client.(*redis.ClusterClient)
	return Key(prefix, cluster, SlotOf(key))
}
