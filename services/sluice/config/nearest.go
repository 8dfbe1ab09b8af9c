package config

// path and env are what a misspelt name is compared with.
func (k Key) path() string { return k.Path }
func (k Key) env() string  { return k.Env }

// suggestion names the known key nearest to a misspelt one, or nothing where
// none is near: a wrong hint is worse than none.
func suggestion(name string, keys []Key, of func(Key) string) string {
	best, least := "", len(name)/2+1
	for _, k := range keys {
		if d := distance(name, of(k)); d < least {
			best, least = of(k), d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
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
