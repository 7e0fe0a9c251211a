package source

import (
	"fmt"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

func TestListedTellsWhatRemains(t *testing.T) {
	var told []string
	o := Observer{Listed: func(stream change.Stream, n int, remaining int64) {
		told = append(told, fmt.Sprint(stream, " ", n, " ", remaining))
	}}
	many := int64(700)
	o.tellListed(pods(), 500, &frame.ListMeta{Continue: "next", RemainingItemCount: &many})
	o.tellListed(pods(), 500, &frame.ListMeta{Continue: "next"})
	o.tellListed(pods(), 200, &frame.ListMeta{})
	new(Observer).tellListed(pods(), 1, &frame.ListMeta{}) // nobody listens
	if got, want := fmt.Sprint(told), "[pods 500 700 pods 500 -1 pods 200 0]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}
