// Package fleet runs this program again as the processes of a comparison, and talks with them in lines: each gets its
// task as JSON in an environment variable, hears its parent on standard input, and answers on standard output. A
// process dies with its parent.
package fleet

import "runtime"

// The kernel tells children of their parent's death when the thread that made them ends: the main one makes them.
func init() { runtime.LockOSThread() }
