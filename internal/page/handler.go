package page

import (
	"embed"
	"net/http"
	"strings"
)

//go:embed assets
var assets embed.FS

// Handler serves the page at /, its parts, and /events.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, name := range map[string]string{"/{$}": "index.html", "/page.css": "page.css", "/page.js": "page.js"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { serveAsset(w, name) })
	}
	mux.HandleFunc("GET /events", p.serveEvents)
	return mux
}

// Paths are what Handler serves.
func Paths() []string { return []string{"GET /{$}", "GET /page.css", "GET /page.js", "GET /events"} }

// policy lets the page load its own parts and nothing else, and be in no other page (CSP Level 3).
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func serveAsset(w http.ResponseWriter, name string) {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil { // it is part of the program
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	kinds := map[string]string{"html": "text/html", "css": "text/css", "js": "text/javascript"}
	header := w.Header()
	header.Set("Content-Type", kinds[name[strings.LastIndexByte(name, '.')+1:]]+"; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	w.Write(content) // a reader that went away is no error of ours
}
