// Package restoretest stands in for a keeper in tests: Whole says once that there
// is nothing to restore, Keep says so after each loss.
package restoretest
