package source

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestScripts plays what testdata/scripts has: after a line "# title" and a comment, a line for each step, "verb words:
// one, another". The server stands at 100, or where "at" says.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, script := range strings.Split("\n"+string(text), "\n# ")[1:] {
			title, steps, _ := strings.Cut(script, "\n")
			t.Run(title, func(t *testing.T) {
				version := 100
				if at, is := strings.CutPrefix(steps, "at "); is {
					at, steps, _ = strings.Cut(at, "\n")
					version = number(at)
				}
				play(t, version, func(r *rig) {
					for _, step := range strings.Split(strings.ReplaceAll(steps, "\n\t", " "), "\n") {
						if step = strings.TrimSpace(step); step != "" {
							before := t.Failed()
							if r.step(step); t.Failed() && !before {
								t.Errorf("that is: %s", step)
							}
						}
					}
				})
			})
		}
	}
}

// step does one step of a script.
func (r *rig) step(text string) {
	head, rest, _ := strings.Cut(text, ":")
	var list []string
	if rest = strings.TrimSpace(rest); rest != "" {
		list = strings.Split(rest, ", ")
	}
	words := append(strings.Fields(head), "", "", "")
	verb, first := words[0], words[1]
	switch verb {
	case "has":
		r.has(first, number(words[2]), list...)
	case "exist":
		r.exist(first, number(words[2]), list...)
	case "keep":
		r.keepFor(first, list...)
		r.keeps()
	case "ignore":
		r.keeps(list...)
	case "kept":
		if got := r.kept(first); len(list) == 0 && len(got) > 0 || len(list) > 0 && (len(got) != 1 || got[0].UID+" "+versionOf(got[0].Object) != list[0]) {
			r.Errorf("kept of %s is %s", first, got)
		}
	case "do":
		r.do(list...)
	case "forget":
		r.server.forget(number(first))
	case "server":
		r.server.set(func(s *server) {
			s.pageSize, s.frozen, s.down = number(words[2]), first == "frozen", first == "down" // "server pages 2"
		})
	case "end":
		r.server.end()
	case "cut":
		r.server.cut()
	case "queues":
		r.queue.Records = number(first)
	case "spools":
		r.spool, r.disk = 1<<20, 2*roomWait
	case "merges":
		r.merges = true
	case "start":
		r.start(strings.Fields(head)[1:]...)
	case "stop":
		r.stop()
	case "define":
		r.informer.End(first)
	case "ask":
		r.ask(first, change.Reason(words[2]), change.Limits{Name: words[3]})
	case "lists":
		r.lists(first)
	case "block":
		r.log(first).block()
	case "free":
		r.log(first).free()
	case "pass":
		d, err := time.ParseDuration(first)
		r.must(err)
		r.pass(d)
	default:
		r.expect(verb, first, words[2], list)
	}
}

// expect compares.
func (r *rig) expect(verb, first, second string, list []string) {
	switch verb {
	case "want":
		r.want(first, list...)
	case "asked":
		r.asked(strings.Join(list, ", "))
	case "stands":
		r.stands(first, second)
	case "apart":
		if got := r.informer.IsApart(r.intakes[first]); strconv.FormatBool(got) != second {
			r.Errorf("%s is apart: %t", first, got)
		}
	case "ended":
		compare(r.T, "counts", []string{fmt.Sprintf("%+v", r.ended[0])}, list)
	case "drift":
		compare(r.T, "drift", strings.Split(strings.TrimSpace(strings.Join(r.drift, ", ")), ", "), list)
	case "epochs":
		if all := r.epochs(first); len(all) != 1 || !strings.HasPrefix(all[0], list[0]) {
			r.Errorf("the ids name the histories %q", all)
		}
	default:
		r.Fatalf("no such verb: %s", verb)
	}
}

// lists makes lists wait, their later pages fail, or both as usual.
func (r *rig) lists(how string) {
	if r.answered != nil {
		r.answered()
		r.answered = nil
	}
	switch how {
	case "wait":
		r.answered = r.holdLists()
	case "break":
		r.answers("list", func(q url.Values) *http.Response {
			if q.Get("continue") != "" {
				return reply(500, "{}")
			}
			return nil
		})
	default:
		r.server.answer = nil
	}
}
