package wire

import "fmt"

// SASL says who the client is.
type SASL struct {
	Mechanism      string // one of the following
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

func (s *SASL) request() string {
	switch {
	case s == nil:
		return "connect to Kafka"
	case s.User == "":
		return "log in to Kafka with " + s.Mechanism
	}
	return fmt.Sprintf("log in to Kafka as %s with %s", s.User, s.Mechanism)
}

// needs names the settings that a wrong login comes from.
func (s *SASL) needs() string {
	switch {
	case s == nil:
		return "kafka.sasl"
	case s.Mechanism == OAuthBearer:
		return "kafka.sasl.oauth.clientId, kafka.sasl.oauth.scopes"
	case s.Mechanism == AWSMSKIAM:
		return "the AWS credentials and their policy (kafka-cluster:Connect), kafka.sasl.region"
	case s.PasswordFile != "":
		return "kafka.sasl.user, kafka.sasl.passwordFile"
	}
	return "kafka.sasl.user, kafka.sasl.password"
}
