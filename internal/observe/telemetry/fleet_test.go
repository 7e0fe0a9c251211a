package telemetry

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAFleetShowsEachClusterAndTheProcessOnce, and one that is not followed makes no probe fail.
func TestAFleetShowsEachClusterAndTheProcessOnce(t *testing.T) {
	f := NewFleet()
	ask := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		f.Handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		return answer.Code, answer.Body.String()
	}
	for _, name := range []string{"a", "b", "away"} {
		f.Add(name)
	}
	if code, text := ask("/readyz"); code != 503 || !strings.Contains(text, "task away: has not started") {
		t.Errorf("before anything has started /readyz is %d, %s", code, text)
	}
	for _, name := range []string{"a", "b"} {
		f.Follows(name, New(Options{ClusterName: name, OfFleet: true}))
	}
	f.Failed("away", errors.New("refused"))
	for _, path := range []string{"/readyz", "/healthz"} {
		if code, text := ask(path); code != 200 {
			t.Errorf("%s is %d, %s", path, code, text)
		}
	}
	_, metrics := ask("/metrics")
	for series, times := range map[string]int{
		"\nprocess_start_time_seconds": 1, "\ngo_goroutines": 1, "\nkubecdc_build_info{": 2, "\nkubecdc_task_up{task=\"away\"} 0": 1, "\nkubecdc_task_up{task=\"a\"} 1": 1,
	} {
		if found := strings.Count(metrics, series); found != times {
			t.Errorf("/metrics has %q %d times, want %d", series, found, times)
		}
	}
	if _, status := ask("/statusz"); !strings.Contains(status, `"problem": "refused"`) {
		t.Errorf("/statusz is %s", status)
	}
	f.Remove("away")
	if _, status := ask("/statusz"); strings.Contains(status, "away") {
		t.Errorf("/statusz still has the cluster: %s", status)
	}
}
