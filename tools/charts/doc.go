// Command charts writes the pictures of docs/algorithms and docs/walks/cache-stampede.
package main
