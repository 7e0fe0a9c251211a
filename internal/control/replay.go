package control

import (
	"context"
	"encoding/json"
	"net/http"
)

// ReplayRequest is the body of POST /deadletter/replay.
type ReplayRequest struct {
	// Sink whose letters are meant; "" is every sink.
	Sink string `json:"sink,omitempty"`
	// IDs of the letters; none is all.
	IDs []string `json:"ids,omitempty"`
	// Force sends also what is history.
	Force bool `json:"force,omitempty"`
}

// Replayed is the answer to a ReplayRequest: what became of each letter, the oldest first.
type Replayed struct {
	Letters []ReplayedLetter `json:"letters"`
}

// ReplayedLetter is what became of one letter.
type ReplayedLetter struct {
	Sink            string `json:"sink"`
	ID              string `json:"id"`
	Stream          string `json:"stream,omitempty"`
	Object          string `json:"object,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Delivered says that the sink holds it, and that the letter is removed. Otherwise Kept says why the letter is
	// kept.
	Delivered bool   `json:"delivered"`
	Kept      string `json:"kept,omitempty"`
	// LeftOut is what it was sent without, since it did not fit: paths, and before.
	LeftOut string `json:"leftOut,omitempty"`
}

func (f *Functions) serveReplay(w http.ResponseWriter, r *http.Request) {
	var request ReplayRequest
	if !readJSON(w, r, &request, `{"sink":"bus","ids":["00112233445566778899"],"force":false}, all optional`) {
		return
	}
	replayed, err := f.Replay(r.Context(), request)
	if err != nil {
		failWith(w, err)
		return
	}
	answer(w, http.StatusOK, replayed)
}

// Replay asks for dead letters to be sent again, and waits for what becomes of them. A *RefusedError names what could
// be asked.
func (c *Client) Replay(ctx context.Context, request ReplayRequest) (*Replayed, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	answer := new(Replayed)
	return answer, c.ask(ctx, http.MethodPost, "/deadletter/replay", body, answer)
}
