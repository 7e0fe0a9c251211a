package replay

import (
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

// parsePage reads a list's query. The continue token is the number of the first object of the next page.
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
	number("continue", &p.first)
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
		text += fmt.Sprintf(`,"continue":"%d","remainingItemCount":%d`, p.end, p.total-p.end)
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
	s.countList(r.URL.Query().Get("limit"))
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
