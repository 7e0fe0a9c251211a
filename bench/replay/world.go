package replay

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// World is what a client finds after an Address: which objects there are, and what happens to them. Worlds are made by
// naming them, and each counts for itself what it was asked. In a world Pods exist and, if it has Kinds, custom
// resources of one group; all that is said of objects and events is said of each resource.
type World struct {
	// Run tells worlds apart that are otherwise the same.
	Run string
	// Cluster is which one it is a world of.
	Cluster int
	// Objects is how many objects a list has.
	Objects int
	// Kinds is how many custom resources there are beside Pods.
	Kinds int
	// Events is how many changes a watch is sent that began before the first of them.
	Events int
	// Past is how many of these had happened when the server started.
	Past int
	// Rate is how many events a second are sent; 0 is as many as the client takes.
	Rate int
	// Held keeps the events back until Release.
	Held bool
	// ObjectBytes is about how large an object is; 0 is the fixture.
	ObjectBytes int
}

// names is how many objects change in turn. What a watch repeats is held in memory, of each resource on its own.
func (w World) names() int {
	const most, memory = 512, 32 << 20
	fit := memory / (w.Kinds + 1) / max(w.ObjectBytes, 16<<10)
	return min(max(burst, fit/burst*burst), most)
}

// firstVersion is the resourceVersion before the first event. All versions have as many digits, so that objects of all
// versions are of one length.
func (w World) firstVersion() int { return oldestVersion + w.Objects }

// oldestVersion is that of the first object; each has the next one.
const oldestVersion = 1_000_000_000

// bookmarkEvery is how often a watch is told where the server stands, as by a real server.
const bookmarkEvery = time.Minute

// Address is where a server is.
type Address struct {
	URL string
	CA  []byte // PEM
}

// Host is what a client connects to that is to be in the world: a URL with a path.
func (a Address) Host(w World) string { return a.URL + "/" + w.String() }

// String is the world's name in a path.
func (w World) String() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // a World always has a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseWorld takes the first element of a path, and returns the rest.
func parseWorld(path string) (w World, rest string, err error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	text, err := base64.RawURLEncoding.DecodeString(name)
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		return w, "", fmt.Errorf("find the world of %s: %w", path, err)
	}
	return w, "/" + rest, nil
}
