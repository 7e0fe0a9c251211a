package badinput

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newRegistry is the URL of a schema registry, behind which stands how it answers.
func newRegistry(t *testing.T) string {
	t.Helper()
	refuses := map[string]struct {
		status int
		says   string
	}{
		"unauthorized": {401, `{"error_code":401,"message":"Unauthorized"}`}, "denied": {403, `{"error_code":40301,"message":"denied"}`},
		"page": {404, "404 page not found"}, "empty": {404, `{"error_code":40401,"message":"no such subject"}`},
		"ill": {500, `{"error_code":50001,"message":"its store is away"}`},
	}
	has := map[string]string{ // the one version of every subject, and takes no other
		"foreign": `{"type":"record","name":"A","fields":[]}`,
		"other":   `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
		"older":   `{"type":"record","name":"A","fields":[{"name":"kubecdc_rest","type":["null","string"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how, path, _ := strings.Cut(r.URL.Path[1:], "/")
		switch {
		case has[how] == "":
			w.WriteHeader(refuses[how].status)
			fmt.Fprint(w, refuses[how].says)
		case strings.HasPrefix(path, "compatibility/"):
			fmt.Fprint(w, `{"is_compatible":false,"messages":["field size is of another type"]}`)
		default:
			fmt.Fprintf(w, `{"subject":"s","version":4,"id":7,"schema":%q}`, has[how])
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
