package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/observe/page"
)

// hostile is a text that would be an element, if it were put in as one.
const hostile = `<img src=x onerror="document.title='stolen'"><script>document.title='stolen'</script>`

// scene is a status document with something of everything, as /statusz has it, and with what it may have one day.
func scene(records int) map[string]any {
	now := time.Now()
	ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339Nano) }
	stream := func(state string, age float64, share int) map[string]any {
		return map[string]any{
			"state": state, "resourceVersion": fmt.Sprint(48_120_000 + records), "positionAgeSeconds": age, "records": records / share, "gaps": 0, "objects": 7, "unknown": []int{1}, "historySeconds": 300, "historyLeftSeconds": 299.9,
			"lastSnapshot": map[string]any{"reason": "initial", "time": ago(3 * time.Hour), "replaced": 4211, "deleted": 0, "synced": 0},
		}
	}
	gone := stream("watching", 2.5, 4)
	gone["gaps"], gone["lastGap"] = 1, map[string]any{"reason": "gone", "stream": "events", "time": ago(26 * time.Minute), "lastDelivered": "1", "resourceVersion": "2"}
	held := stream("watching", 131, 1)
	held["historyLeftSeconds"], held["heldBy"], held["heldSince"] = 169.2, []string{"lake"}, ago(131*time.Second)
	read := stream("snapshot", 12, 30)
	read["snapshot"] = map[string]any{"reason": "requested", "sinks": []string{"lake", hostile}, "limits": map[string]any{"namespace": "shop", "selector": "app=web"}, "since": ago(time.Minute), "objects": 500, "percent": 42}
	counted := stream("watching", 7, 12)
	counted["snapshot"] = map[string]any{"reason": "resync", "since": ago(time.Minute), "objects": 1500}
	failing := stream("failing", 95, 9)
	failing["lastError"] = hostile
	return map[string]any{
		"version": "v0.9.0", "cluster": "prod-eu1", "uptimeSeconds": 93_784.0, "healthy": true, "ready": true,
		"streams": map[string]any{
			"pods": held, "deployments.apps": stream("watching", 41, 6), "events": gone, "shop/secrets": read,
			"certificates.cert-manager.io": failing, "nodes": counted,
		},
		"discovery": map[string]any{"leftOut": map[string]string{"gears.example.com": "the API server does not serve it yet"}},
		"sinks": map[string]any{
			"lake":    map[string]any{"kind": "kafka", "address": "kafka-0:9092,kafka-1:9092 topic k8s.{cluster}.{resource}", "format": "cloudevents", "failingSince": ago(3 * time.Minute), "spoolRecords": 41_000, "state": "failing", "records": records, "queueRecords": 5120, "queueBytes": 62 << 20, "spoolBytes": 400 << 20, "oldestUnackedSeconds": 73.0, "lastError": "produce to topic k8s.prod-eu1.pods partition 2: no broker answers: " + hostile},
			"bus":     map[string]any{"state": "open", "records": records, "queueRecords": 12, "queueBytes": 140 << 10, "note": "messages are sent fast"},
			hostile:   map[string]any{"state": "open", "records": records, "queueRecords": 0, "queueBytes": 0, "gaps": 2, "recentGaps": rejections(ago)},
			"archive": map[string]any{"state": "open", "records": records, "queueRecords": 0, "queueBytes": 0},
		},
	}
}

// rejections are two gaps of one sink, of which one was sent again.
func rejections(ago func(time.Duration) string) []any {
	gap := map[string]any{"reason": "policy", "rejected": "too_large", "stream": "configmaps", "object": "shop/" + hostile, "time": ago(time.Minute)}
	sent := map[string]any{"reason": "policy", "rejected": "too_large", "stream": "configmaps", "object": "shop/dump", "time": ago(time.Hour), "resolved": ago(30 * time.Minute)}
	return []any{gap, sent}
}

// serveScene serves the page with the scene, while changes come in.
func serveScene(t *testing.T) string {
	t.Helper()
	records := 1_200_000
	p := page.New(page.Options{
		Status: func() any { records += 300 + records%7*120; return scene(records) },
		Queues: map[string]int{"lake": 64 << 20, "bus": 64 << 20, "archive": 64 << 20}, Spools: map[string]int64{"lake": 1 << 30}, Private: func(*http.Request) string { return "" },
	})
	for i, op := range []change.Op{change.Added, change.Updated, change.Deleted, change.Gap, change.Replaced, change.Updated, change.Added} {
		rec := &change.Record{Stream: &change.Stream{Resource: change.Resource{Group: "apps", Name: "deployments"}}, Op: op, Received: time.Now()}
		if op == change.Gap {
			rec.Snapshot = &change.Snapshot{Reason: change.Gone}
		} else {
			rec.Key = change.Key{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
		}
		p.Received(rec)
	}
	p.Received(&change.Record{Stream: &change.Stream{Resource: change.Resource{Name: "pods"}}, Op: change.Updated, Key: change.Key{Namespace: "shop", Name: hostile}, Received: time.Now()})
	mux := http.NewServeMux()
	p.Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

func media(features ...string) chromedp.Action[chromedp.Void] {
	var all []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		all = append(all, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: all})
		return err
	})
}

const drawn = `document.querySelectorAll("#streamRows tr").length === 6 && document.querySelector("#line").getAttribute("points").split(" ").length > 3`

// TestThePageInLightDarkAndOnAPhone looks at the same scene in each: nothing is wider than the screen.
func TestThePageInLightDarkAndOnAPhone(t *testing.T) {
	url := serveScene(t)
	b := newTab(t)
	backgrounds := map[string]bool{}
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1200}, {"dark", 1200}, {"light", 780}, {"light", 400}, {"dark", 360}} {
		b.do(media("prefers-color-scheme", look.scheme), chromedp.EmulateViewport(look.width, 900), chromedp.Navigate(url))
		b.await(drawn)
		if wide := ask[int64](b, "document.documentElement.scrollWidth"); wide > look.width {
			t.Errorf("%s at %d: the page is %d wide", look.scheme, look.width, wide)
		}
		if cut := ask[[]string](b, `[...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)`); len(cut) > 0 {
			t.Errorf("%s at %d: must be scrolled sideways: %q", look.scheme, look.width, cut)
		}
		if broken := ask[[]string](b, `[...document.querySelectorAll("#streamRows th .name")].filter((e) => e.textContent.length < 20 && e.offsetHeight > 30).map((e) => e.textContent)`); len(broken) > 0 {
			t.Errorf("%s at %d: short names are broken: %q", look.scheme, look.width, broken)
		}
		if spools := ask[int64](b, `[...document.querySelectorAll("#sinkCards .bar")].filter((e) => !e.hidden && e.innerText.includes("On disk")).length`); spools != 1 {
			t.Errorf("%s at %d: %d sinks have a spool, and one spools", look.scheme, look.width, spools)
		}
		if told := ask[[]string](b, `[...document.querySelectorAll("#streamRows td small, #waitingHint")].map((e) => e.innerText).filter((text) => text.includes("history"))`); !slices.Equal(told, []string{"the oldest for 73 s; history ends in about 3 min", "history ends in about 3 min"}) {
			t.Errorf("%s at %d: of the stream that is held up the page says %q", look.scheme, look.width, told)
		}
		for selector, want := range map[string]string{
			"#health": "1 sink fails", "#sinkCards .card:nth-child(4) .place": "kafka · kafka-0:9092,kafka-1:9092 topic k8s.{cluster}.{resource} · cloudevents",
			"#sinkCards .card:nth-child(4) .problem": "failing for 3 min, since ", "#sinkCards .gaps li.resolved span": "shop/dump: too_large, 60 min ago; resolved, sent again 30 min ago",
			"#streamRows tr:nth-child(5) small": "held up by lake since ", "#sinkCards .card:nth-child(4) .bar:nth-of-type(3)": "41,000 records, 400 MiB of 1.0 GiB",
			"#leftCount": "1 resource is not streamed", "#streamRows tr:nth-child(4) .hint": "resync snapshot: 1,500 objects",
			"#streamRows tr:nth-child(6) .hint": "requested snapshot of shop, app=web for lake, " + hostile + ": 42%",
		} {
			if text := ask[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? 'nothing'", selector)); !strings.Contains(text, want) {
				t.Errorf("%s at %d: %s says %q, want %q in it", look.scheme, look.width, selector, text, want)
			}
		}
		if shown := ask[[]int64](b, `[...document.querySelectorAll("#streamRows progress")].filter((e) => e.offsetHeight > 0).map((e) => e.value)`); !slices.Equal(shown, []int64{42}) {
			t.Errorf("%s at %d: bars are at %v, want one at 42", look.scheme, look.width, shown)
		}
		if links := ask[[]string](b, `[...document.querySelectorAll(".gaps a")].filter((e) => !e.hidden).map((e) => e.href)`); len(links) != 1 || !strings.HasSuffix(links[0], "#kubecdcrejected") {
			t.Errorf("the gap that is not resolved has the links %q", links)
		}
		backgrounds[ask[string](b, "getComputedStyle(document.body).backgroundColor")] = true
		b.picture(fmt.Sprintf("%s-%d.png", look.scheme, look.width))
	}
	if len(backgrounds) != 2 {
		t.Errorf("light and dark have the backgrounds %v", backgrounds)
	}
}

// TestI9WhatComesFromTheClusterIsText: a name or an error that looks like an element is none.
func TestI9WhatComesFromTheClusterIsText(t *testing.T) {
	b := newTab(t)
	b.do(chromedp.Navigate(serveScene(t)))
	b.await(drawn)
	if n := ask[int](b, `document.querySelectorAll("img, body script").length`); n != 0 {
		t.Errorf("%d elements came out of text", n)
	}
	if title := ask[string](b, "document.title"); title != "prod-eu1 – kubecdc exporter" {
		t.Errorf("the title is %q", title)
	}
	if text := ask[string](b, "document.body.innerText"); strings.Count(text, hostile) < 3 {
		t.Errorf("the text is not shown as it is:\n%s", text)
	}
}

// TestThePageIsForKeyboardsAndScreenReaders: landmarks, names and states as an assistive program sees them.
func TestThePageIsForKeyboardsAndScreenReaders(t *testing.T) {
	b := newTab(t)
	b.do(media("prefers-reduced-motion", "reduce"), chromedp.EmulateViewport(360, 900), chromedp.Navigate(serveScene(t)))
	b.await(drawn)
	tree, err := chromedp.Run(b.ctx, func(ctx context.Context, target *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		seen[strings.Trim(string(n.Role.Value), `"`)]++
	}
	for role, least := range map[string]int{"banner": 1, "main": 1, "contentinfo": 1, "navigation": 1, "status": 1, "region": 4, "table": 2, "columnheader": 11, "rowheader": 6, "meter": 5, "article": 4} {
		if seen[role] < least {
			t.Errorf("%d of role %s, want %d", seen[role], role, least)
		}
	}
	if live := ask[string](b, `document.getElementById("health").getAttribute("aria-live")`); live != "polite" {
		t.Errorf("the health is announced %q", live)
	}
	if moves := ask[string](b, `getComputedStyle(document.querySelector(".track div")).transitionDuration`); !slices.Contains([]string{"0s", ""}, moves) {
		t.Errorf("bars move for %s although motion is not wanted", moves)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	if first := ask[string](b, "document.activeElement.className"); first != "skip" {
		t.Errorf("the first stop of the keyboard is %q, want the skip link", first)
	}
	b.do(chromedp.Focus(chromedp.CSS("#pause")), chromedp.KeyEvent(" "))
	if pressed := ask[string](b, `document.getElementById("pause").getAttribute("aria-pressed") + " " + document.getElementById("pause").innerText`); pressed != "true Continue" {
		t.Errorf("the space bar makes the button %q", pressed)
	}
}

// TestThePageSaysDeliveringOnlyWhereThatIsTrue: it says the worst that is true.
func TestThePageSaysDeliveringOnlyWhereThatIsTrue(t *testing.T) {
	b := newTab(t)
	b.do(chromedp.Navigate(serveScene(t)))
	b.await(drawn)
	stream, sink := `streams: {a: {state: "watching"}}`, `sinks: {b: {state: "open", oldestUnackedSeconds: 2}}`
	for _, c := range []struct{ streams, sinks, more, want string }{
		{stream, sink, "", "delivering"},
		{`streams: {}`, sink, "", "nothing to stream"},
		{`streams: {a: {state: "waiting"}}`, sink, "", "1 stream is not read"},
		{`streams: {a: {state: "watching", heldBy: ["b"]}}`, sink, "", "1 stream is held up"},
		{`streams: {a: {state: "snapshot"}}`, sink, "", "taking snapshots"},
		{stream, `sinks: {b: {state: "open", spoolRecords: 1}}`, "", "1 sink is behind"},
		{stream, `sinks: {b: {state: "open", oldestUnackedSeconds: 61}}`, "", "1 sink is behind"},
		{stream, `sinks: {b: {state: "open", failingSince: "2026-11-21T06:51:37Z"}}`, "", "1 sink fails"},
		{stream, `sinks: {b: {state: "stopped"}}`, "ready: false,", "1 sink is stopped"},
		{stream, sink, `ready: false, state: {lastError: "no space"},`, "the state is not saved"},
		{`streams: {a: {state: "failing"}}`, sink, "ready: false,", "1 stream is not read"},
		{stream, sink, "ready: false,", "starting"},
		{stream, sink, "healthy: false,", "unhealthy"},
	} {
		status := fmt.Sprintf("{healthy: true, ready: true, %s %s, %s}", c.more, c.streams, c.sinks)
		if got := ask[string](b, "healthOf("+status+")[0]"); got != c.want {
			t.Errorf("of %s it says %q, want %q", status, got, c.want)
		}
	}
}
