package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Listening is where the exporter of a state serves its metrics, and its process id. The file of the state that says so
// has them first.
func Listening(stateDir string) (address, pid string, err error) {
	text, err := os.ReadFile(filepath.Join(stateDir, "address"))
	fields := strings.Fields(string(text))
	if err != nil {
		return "", "", fmt.Errorf("read where the exporter listens: %w", err)
	}
	if len(fields) < 2 {
		return "", "", fmt.Errorf("read where the exporter listens: %q is no address with a process id", text)
	}
	return fields[0], fields[1], nil
}

// Get asks the exporter of a state. The caller closes the answer.
func Get(ctx context.Context, stateDir, path string) (io.ReadCloser, error) {
	address, _, err := Listening(stateDir)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// ReadStatus reads what matters of the exporter's /statusz. It fails where the exporter does not answer yet.
func ReadStatus(ctx context.Context, stateDir string, into any) error {
	body, err := Get(ctx, stateDir, "/statusz")
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(body).Decode(into), body.Close())
}
