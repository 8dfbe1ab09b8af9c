package main

// Files are the documents by their names in docs/reference.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, write := range map[string]func() ([]byte, error){"config.md": Config, "metrics.md": Metrics, "cli.md": CLI} {
		text, err := write()
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	return files, nil
}
