package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// replayer answers POST /deadletter/replay, and remembers what it was asked.
func replayer(t *testing.T) (*Client, *[]ReplayRequest) {
	t.Helper()
	asked := new([]ReplayRequest)
	functions := Functions{Replay: func(_ context.Context, r ReplayRequest) (*Replayed, error) {
		*asked = append(*asked, r)
		return &Replayed{Letters: []ReplayedLetter{{Sink: "bus", ID: "1", Delivered: true}, {Sink: "bus", ID: "2", Kept: "superseded"}}}, nil
	}}
	return listen(t, functions), asked
}

func TestReplayIsAskedAndAnswered(t *testing.T) {
	client, asked := replayer(t)
	replayed, err := client.Replay(t.Context(), ReplayRequest{Sink: "bus", IDs: []string{"1", "2"}, Force: true})
	if err != nil || fmt.Sprint(*asked) != "[{bus [1 2] true}]" || fmt.Sprint(replayed.Letters) != "[{bus 1    true  } {bus 2    false superseded }]" {
		t.Errorf("asked %v, answered %v, %v", *asked, replayed, err)
	}
}

// What sends something wants a body that no form of a web page can send, without what nobody reads.
func TestWrongReplaysSendNothing(t *testing.T) {
	client, asked := replayer(t)
	for _, c := range []struct {
		method, kind, body string
		status             int
		want               string
	}{
		{"POST", "text/plain", "{}", http.StatusUnsupportedMediaType, "want Content-Type: application/json"},
		{"POST", "application/json", `{"id":"1"}`, http.StatusBadRequest,
			`read the request: json: unknown field \"id\": want JSON such as {\"sink\":\"bus\",\"ids\":[\"00112233445566778899\"],\"force\":false}, all optional`},
		{"GET", "application/json", "", http.StatusMethodNotAllowed, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, client.base+"/deadletter/replay", strings.NewReader(c.body))
		must(t, err)
		request.Header.Set("Content-Type", c.kind)
		token.show(request)
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		if body := read(t, response); response.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %s %s", c.method, c.body, response.Status, body)
		}
		response.Body.Close()
	}
	if len(*asked) != 0 {
		t.Errorf("asked %v", *asked)
	}
}
