// Package sluice is the one binary: it joins the rooms, and nothing else does.
//
// # Model
//
// A table of modules (name, what it needs, constructor) is all there is to
// run: sluice run --target=… takes rows of it, a container of one room and the
// whole on one machine alike. Clients that rooms share (the Postgres pool, the
// Redis client, the usage store) are built at first use and closed after the
// last module stopped. sluice dev adds the servers, demo data and tokens
// (package dev) around the same table; no room knows which mode it runs in.
//
// # Invariants
//
//   - What needs Postgres starts without it: the process lives, is not ready,
//     says why, and migrates the schema when Postgres comes.
//   - The gateway's rows need neither Postgres nor Elasticsearch.
//
// Fed by the command line and package config; feeds the rooms.
package sluice

//go:generate go run ./reference ../../docs/reference
