package replay

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// listChunk is how many bytes of a page are made at a time.
const listChunk = 64 << 10

// page is a part of a list: the objects from first up to, not with, end.
type page struct {
	first, end, total int
	version           int
}

// token is where a list goes on, as API servers write it, with the number of the first object of the next page.
type token struct {
	Version  string `json:"v"`
	Revision int    `json:"rv"`
	Start    string `json:"start"` // behind the last object of the page before
	First    int    `json:"first"`
}

// parsePage reads a list's query.
func parsePage(query url.Values, total, now int) (page, error) {
	p := page{end: total, total: total, version: now}
	var err error
	number := func(name string, into *int) {
		if text := query.Get(name); text != "" && err == nil {
			if *into, err = strconv.Atoi(text); err != nil {
				err = fmt.Errorf("parameter %s: %w", name, err)
			}
		}
	}
	limit := total
	number("limit", &limit)
	number("resourceVersion", &p.version)
	if text := query.Get("continue"); text != "" && err == nil {
		var next token
		var decoded []byte
		if decoded, err = base64.RawURLEncoding.DecodeString(text); err == nil {
			err = json.Unmarshal(decoded, &next)
		}
		p.first = next.First
	}
	p.end = min(p.first+limit, total)
	if err == nil && (p.first < 0 || p.first > p.end || p.version > now) {
		err = fmt.Errorf("objects %d to %d at version %d do not exist", p.first, p.end, p.version)
	}
	return p, err
}

// meta is the metadata of the page.
func (p *page) meta() string {
	text := fmt.Sprintf(`{"resourceVersion":"%d"`, p.version)
	if p.end < p.total {
		last := appendNumber([]byte("team-"), (p.end-1)*namespaces/p.total, 3)
		last = append(appendNumber(append(append(last, '/'), nameHead...), p.end-1, 7), 0)
		next, _ := json.Marshal(token{"meta.k8s.io/v1", p.version, string(last), p.end}) // texts and numbers
		text += fmt.Sprintf(`,"continue":"%s","remainingItemCount":%d`, base64.RawURLEncoding.EncodeToString(next), p.total-p.end)
	}
	return text + "}"
}

// list writes a page. It is made while it is written: no page is ever in memory whole. Like API servers it has the
// metadata of built-in types in front of the items, and that of custom ones behind.
func (s *session) list(w http.ResponseWriter, r *http.Request, res *resource) {
	p, err := parsePage(r.URL.Query(), s.world.Objects, s.version(res))
	if err != nil {
		writeStatus(w, http.StatusBadRequest, err.Error())
		return
	}
	text := make([]byte, 0, listChunk+16<<10)
	tail := "]}\n"
	if res.group == "" {
		text = fmt.Appendf(text, `{"kind":"%sList","apiVersion":"v1","metadata":%s,"items":[`, res.kind, p.meta())
	} else {
		text = fmt.Appendf(text, `{"apiVersion":"%s/%s","items":[`, res.group, res.version)
		tail = fmt.Sprintf(`],"kind":"%sList","metadata":%s}`+"\n", res.kind, p.meta())
	}
	for i := p.first; i < p.end; i++ {
		if i > p.first {
			text = append(text, ',')
		}
		text = res.item.append(text, i, oldestVersion+i+1)
		if len(text) >= listChunk {
			if _, err := w.Write(text); err != nil {
				return // the client is gone
			}
			text = text[:0]
		}
	}
	_, _ = w.Write(append(text, tail...)) // the client may be gone
}
