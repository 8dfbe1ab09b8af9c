// Package history answers what was changed, by whom (the audit log), and what was
// decided on requests (usage events). It writes nothing.
package history
