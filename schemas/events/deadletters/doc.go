// Package deadletters is the contract of topic usage-dead-letters.v1: usage
// events that could not be indexed, as they were, with the reason. The indexer
// writes it; operators read it and may play records back once the cause is
// gone.
package deadletters
