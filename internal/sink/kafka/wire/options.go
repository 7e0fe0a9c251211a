package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Options configures a Cluster. Brokers is needed.
type Options struct {
	Brokers  []string      // host:port; any one of them leads to the others
	ClientID string        // as the brokers' quotas and logs show it; "" is "kubecdc"
	TLS      *TLS          // nil is plaintext
	SASL     *SASL         // nil is no login
	Timeout  time.Duration // of one request, the connection for it included; 0 is 5 s

	// Throttled is told, from any goroutine, that a request waits so long because a broker's quota is used up; nil is
	// nobody.
	Throttled func(left time.Duration)

	// Dial opens the plain connection; TLS and login are done on top. nil is net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// TLS configures verified connections; there is no way to leave the verification out. The files hold PEM and are read
// again for every connection, so they can be renewed.
type TLS struct {
	CAFile            string // "" is the system's authorities
	CertFile, KeyFile string // of the client; both or none
	ServerName        string // what the broker's certificate must name; "" is the host that is dialled
}

// SASL says who the client is.
type SASL struct {
	Mechanism      string // one of Mechanisms
	User, Password string // for PLAIN and SCRAM
	PasswordFile   string // instead of Password; read again for every connection, a newline at its end is cut off
	OAuth          *OAuth // for OAUTHBEARER
	Region         string // for AWS_MSK_IAM; "" is that of the AWS configuration (AWS_REGION, profile)
}

// The values of SASL.Mechanism.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER"
	AWSMSKIAM   = "AWS_MSK_IAM"
)

// Mechanisms are the values of SASL.Mechanism.
func Mechanisms() []string { return []string{Plain, ScramSHA256, ScramSHA512, OAuthBearer, AWSMSKIAM} }

// OAuth is where tokens come from: the client credentials grant of RFC 6749 section 4.4. A token is used for all
// connections until shortly before it expires.
type OAuth struct {
	TokenURL               string
	ClientID, ClientSecret string
	ClientSecretFile       string // instead of ClientSecret; read again for every token
	Scopes                 []string
	Audience               string            // sent as "audience", which some servers ask for
	CAFile                 string            // of TokenURL; "" is the system's authorities
	Extensions             map[string]string // SASL extensions (KIP-342), such as Confluent Cloud's logicalCluster
}

// complete checks the options and fills in the defaults. It reports all problems at once.
func (o *Options) complete() error {
	if o.ClientID == "" {
		o.ClientID = "kubecdc"
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	problems := []error{o.checkBrokers()}
	if o.Timeout < 0 {
		problems = append(problems, fmt.Errorf("option Timeout is %s: use 0 for %s, or more", o.Timeout, defaultTimeout))
	}
	if o.TLS != nil {
		_, err := o.TLS.config("host")
		problems = append(problems, err)
	}
	if o.SASL != nil {
		problems = append(problems, o.SASL.check(o.TLS != nil))
	}
	return errors.Join(problems...)
}

func (o *Options) checkBrokers() error {
	if len(o.Brokers) == 0 {
		return errors.New(`option Brokers is empty: name a broker, such as "host:9092"`)
	}
	var problems []error
	for _, broker := range o.Brokers {
		host, port, err := net.SplitHostPort(broker)
		number, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || bad != nil || number == 0 || strings.ContainsAny(broker, ", \t\r\n/") {
			problems = append(problems, fmt.Errorf(`option Brokers: %q is not a broker's address: write it as "host:9092"`, broker))
		}
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
