package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// natsVariable is how the command line of NATS is told of the server.
const natsVariable = "NATS_URL"

// tools is a directory with the commands nats and kcat. The pages use "nats req SUBJECT BODY", and kcat to send a file
// and to read some messages: this test's own program does that instead.
func (w *world) tools() string {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.path("tools")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for _, tool := range []string{"nats", "kcat"} {
		name := filepath.Join("tools", tool)
		w.write(name, fmt.Sprintf("#!/bin/sh\nexec %q %s \"$@\"\n", self, tool))
		if err := os.Chmod(w.path(name), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}

// keepBucket gives the exporter one more sink, a bucket.
func (w *world) keepBucket() {
	w.t.Helper()
	w.stop()
	now := fmt.Sprintf("  - {name: now, nats: {url: %q, kv: CLUSTER}}\n", w.nats.URL())
	w.write("config.yaml", fmt.Sprintf(configuration, now, w.nats.URL()))
	w.start()
}

// lastOf says whether the last message of the subject has the text.
func (w *world) lastOf(stream, subject, text string) bool {
	s, err := w.stream.Stream(w.t.Context(), stream)
	if err != nil {
		return false
	}
	message, err := s.GetLastMsgForSubject(w.t.Context(), subject)
	return err == nil && bytes.Contains(message.Data, []byte(text))
}

// ask prints the answer as the command does, with its errors, and returns the exit code.
func ask(url, subject, body string) int {
	nc, err := nats.Connect(url, nats.Timeout(limit))
	if err == nil {
		defer nc.Close()
		var answer *nats.Msg
		if answer, err = nc.Request(subject, []byte(body), limit); err == nil {
			fmt.Printf("%s: %s\n%s\n", micro.ErrorHeader, answer.Header.Get(micro.ErrorHeader), answer.Data)
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
