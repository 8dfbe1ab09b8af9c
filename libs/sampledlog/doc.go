// Package sampledlog logs what may go wrong for every request at once: at most one
// line a second, which tells how many lines were left out before. So the log shows
// that something is wrong, with one of the causes; a metric has to say how often.
//
// It is apart from libs/service, whose metrics bring database/sql into every
// program that imports it.
package sampledlog
