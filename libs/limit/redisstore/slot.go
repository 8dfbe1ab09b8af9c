package redisstore

import "strings"

const numSlots = 16384

// tagOf returns the part of a key that decides its slot, as the Redis Cluster
// specification has it: what is between the first { and the next }, if anything.
func tagOf(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}

// slotOf returns a key's slot: CRC-16/XMODEM of its tag.
func slotOf(key string) int {
	var crc uint16
	for _, b := range []byte(tagOf(key)) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^b]
	}
	return int(crc % numSlots)
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
