package wire

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/sasl"
)

// TestMSKSigns holds that the login is signed for the broker with the credentials of the environment. No broker judges
// it: there is none outside AWS.
func TestMSKSigns(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1",
		"AWS_CONFIG_FILE": filepath.Join(t.TempDir(), "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none")} {
		t.Setenv(name, value)
	}
	for region, want := range map[string]string{"": "eu-central-1", "eu-west-1": "eu-west-1"} {
		_, first, err := (&msk{region: region}).Start(sasl.WithMetadata(t.Context(), &sasl.Metadata{Host: "b-1.msk", Port: 9098}))
		must(t, err)
		var signed map[string]string
		must(t, json.Unmarshal(first, &signed))
		if signed["host"] != "b-1.msk" || !strings.HasSuffix(signed["x-amz-credential"], "/"+want+"/kafka-cluster/aws4_request") || signed["x-amz-signature"] == "" {
			t.Errorf("signed %v, want it for b-1.msk in %s", signed, want)
		}
	}
	t.Setenv("AWS_REGION", "")
	_, _, err := new(msk).Start(sasl.WithMetadata(t.Context(), &sasl.Metadata{Host: "b-1.msk"}))
	if Classify(err) != Fatal || !strings.Contains(Explain(err).Error(), "set kafka.sasl.region, or AWS_REGION") {
		t.Errorf("no region: %v", Explain(err))
	}
}
