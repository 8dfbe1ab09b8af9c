// Command sluice is the one binary; package services/sluice is what it does.
//
// It turns signals into an orderly stop and errors into an exit code, and holds
// no logic of its own. Fed by a shell or a container runtime.
package main
