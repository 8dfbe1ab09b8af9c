// Package gateways is the contract of topic gateways.v1: which gateways live.
//
// Every gateway beats on it each five seconds and reads the others' beats; one
// that has not beaten for fifteen seconds, or said that it leaves, is gone. A
// gateway needs the number when the counters are away and a limit has to be
// shared out (onStoreLoss local).
package gateways
