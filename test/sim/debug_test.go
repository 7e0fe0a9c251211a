package sim

import (
	"fmt"
	"os"

	"github.com/kubecdc/kubecdc/internal/listener"
)

func init() {
	if os.Getenv("DBG") != "" {
		listener.Debug = func(a ...any) { fmt.Println(a...) }
	}
}
