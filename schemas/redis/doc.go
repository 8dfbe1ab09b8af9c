// Package redis is the contract of what lies in Redis: the script that decides,
// and KEYS.md, which says what each key is called and holds.
//
// The script is written for one atomic step a decision: it reads and judges
// everything first and writes only what cannot fail. libs/limit/redisstore runs
// it; nobody else writes these keys.
package redis
