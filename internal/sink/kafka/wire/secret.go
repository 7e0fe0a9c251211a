package wire

import (
	"fmt"
	"os"
	"strings"
)

// secret is the value itself, or the content of a file.
func secret(value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

func checkSecret(name, value, file string) error {
	content, err := secret(value, file)
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	if content == "" {
		return fmt.Errorf("option %s: %s is empty", name, file)
	}
	return nil
}
