package didyoumean

import "strings"

// Nearest returns the known name nearest to a misspelt one, or "" where none is
// near: a wrong hint is worse than none. Near is by Levenshtein's distance, at
// most half of the name's bytes; case does not count. Of equally near ones the
// first is taken. Safe for concurrent use.
func Nearest(name string, known []string) string {
	const longest = 128 // bytes; no name of ours is longer, and the distance is quadratic
	if len(name) > longest {
		return ""
	}
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's: the insertions, deletions and replacements of
// bytes that turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
