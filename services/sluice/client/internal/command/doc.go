// Package command has what the client commands share on the terminal: groups of
// commands, mistakes in flags and arguments, tables and JSON.
package command
