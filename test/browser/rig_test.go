package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// limit bounds what the browser is waited for, on a busy machine.
const limit = 2 * time.Minute

// tab is a page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex // guards the following
	problems []string   // what the browser complained of
	forgiven string     // part of the complaints that the test has caused
}

// newTab starts a browser. The test fails if the page throws, or wants what its policy forbids.
func newTab(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(Require(t)), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(limit))
	ctx, cancelBrowser := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(cancelBrowser)
	t.Cleanup(cancelTab)
	b := &tab{t: t, ctx: ctx}
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdplog.Enable, cdp.Empty{})
		return err
	}))
	b.hear()
	return b
}

// hear listens to what the browser complains of, until the test's end.
func (b *tab) hear() {
	ctx, stop := context.WithCancel(b.ctx)
	thrown := cdp.Events(ctx, chromedp.FromContext(b.ctx).Target, runtime.ExceptionThrown)
	logged := cdp.Events(ctx, chromedp.FromContext(b.ctx).Target, cdplog.EntryAdded)
	var listeners sync.WaitGroup
	listeners.Go(func() {
		for e, err := range thrown {
			if err == nil {
				b.complain(fmt.Sprint(e.ExceptionDetails))
			}
		}
	})
	listeners.Go(func() {
		for e, err := range logged {
			if err == nil && e.Entry.Level == cdplog.EntryLevelError && !strings.HasSuffix(e.Entry.URL, "/favicon.ico") {
				b.complain(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	})
	b.t.Cleanup(func() {
		stop()
		listeners.Wait()
		for _, problem := range b.problems {
			if b.forgiven == "" || !strings.Contains(problem, b.forgiven) {
				b.t.Errorf("the browser complains: %s", problem)
			}
		}
	})
}

func (b *tab) complain(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// forgive takes back the complaints that hold the text: the test has caused them.
func (b *tab) forgive(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgiven = text
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates an expression.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("ask %s: %v", expression, err)
	}
	return result
}

// await waits until an expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(limit), chromedp.WithPollingInterval(100*time.Millisecond))); err != nil {
		b.t.Fatalf("wait until %s: %v; the page says:\n%s", expression, err, ask[string](b, "document.body.innerText"))
	}
}

// view writes a screenshot of what is on the screen beside the test's other artifacts.
func (b *tab) view(name string) {
	b.t.Helper()
	b.keep(name, chromedp.CaptureScreenshot())
}

// picture writes a screenshot of the whole page.
func (b *tab) picture(name string) {
	b.t.Helper()
	b.keep(name, chromedp.FullScreenshot(100))
}

func (b *tab) keep(name string, of chromedp.Action[[]byte]) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, of)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
