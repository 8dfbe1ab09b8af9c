// Command reference writes docs/reference from the code, every configuration key,
// every metric and every command, into the folder given; go generate in
// services/sluice runs it.
//
// Keys come from the configuration struct by reflection, metrics from what the
// rooms and libraries register, commands from the tree of commands. Nothing in
// these documents is written by hand, and a test fails where they differ from
// the code. Fed by services/sluice; feeds readers.
package main

// notice starts every document.
const notice = "<!-- Written by `make generate` from the code; do not edit. -->\n\n"
