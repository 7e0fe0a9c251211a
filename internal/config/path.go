package config

import "fmt"

// under is the path of a key, quoted where it is no plain word.
func under(path, key string) string {
	if !isWord(key) {
		key = fmt.Sprintf("%q", shorten(key))
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }
