package file

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := writeToBrokenPipe(); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
