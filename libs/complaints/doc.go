// Package complaints logs what may go wrong for every request at once without
// filling the disk with it.
//
// What is said within a second of another line of the same Log is left out, and
// the next line tells how many were: so the log shows that something is wrong,
// with one of the causes, and a metric has to say how often.
package complaints
