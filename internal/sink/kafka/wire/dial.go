package wire

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"
)

// clientID is as the brokers' quotas and logs show it.
const clientID = "kubecdc"

// Options configures a Cluster. Brokers is needed.
type Options struct {
	Brokers []string      // host:port; any one of them leads to the others
	TLS     *TLS          // nil is plaintext
	SASL    *SASL         // nil is no login
	Timeout time.Duration // of one request, the connection for it included; 0 is 5 s

	// Throttled is told, from any goroutine, that a request waits so long because a broker's quota is used up; nil is
	// nobody.
	Throttled func(left time.Duration)

	// Dial opens the plain connection; TLS and login are done on top. nil is net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// complete fills in the defaults, and checks what the configuration's own check leaves to the sink: what files hold,
// and what goes with what. It reports all problems at once.
func (o *Options) complete() error {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Throttled == nil {
		o.Throttled = func(time.Duration) {}
	}
	var problems []error
	if o.TLS != nil {
		_, err := o.TLS.Config("kafka.tls")
		problems = append(problems, err)
	}
	if o.SASL != nil {
		problems = append(problems, o.SASL.check(o.TLS != nil))
	}
	return errors.Join(problems...)
}

// connectTimeout is the limit for a connection that is ready for requests.
func (o *Options) connectTimeout() time.Duration {
	if o.SASL != nil && (o.SASL.Mechanism == OAuthBearer || o.SASL.Mechanism == AWSMSKIAM) {
		return max(o.Timeout, connectTimeout) // somebody else is asked for a token meanwhile
	}
	return connectTimeout
}

// connectTimeout is for a connection with TLS, and again for the login on it: a dead broker costs that much whenever it
// is drawn.
const connectTimeout = 2 * time.Second
