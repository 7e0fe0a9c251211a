package wire

import (
	"context"
	"net"
	"time"
)

// Options configures a Cluster. Brokers is needed.
type Options struct {
	Brokers  []string      // host:port; any one of them leads to the others
	ClientID string        // as the brokers' quotas and logs show it; "" is "kubecdc"
	TLS      *TLS          // nil is plaintext
	SASL     *SASL         // nil is no login
	Timeout  time.Duration // of one request, the connection for it included; 0 is 5 s

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
