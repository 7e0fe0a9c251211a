package wire

import (
	"context"
	"errors"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// saslLogin is a sasl.Mechanism that looks its secret up for every connection.
type saslLogin struct {
	name  string
	start func(ctx context.Context) (sasl.StateMachine, []byte, error)
}

func (l *saslLogin) Name() string { return l.name }

func (l *saslLogin) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	return l.start(ctx)
}

// newLogin returns nil where there is nobody to log in.
func newLogin(options *SASL) (*saslLogin, error) {
	if options == nil {
		return nil, nil
	}
	l := &saslLogin{name: options.Mechanism}
	switch options.Mechanism {
	case OAuthBearer:
		l.start = newBearer(options.OAuth).start
	case AWSMSKIAM:
		l.start = newMSK(options.Region).start
	default:
		l.start = options.withPassword
	}
	return l, nil
}

func (s *SASL) withPassword(ctx context.Context) (sasl.StateMachine, []byte, error) {
	password, err := secret(s.Password, s.PasswordFile)
	if err != nil {
		return nil, nil, &loginFailure{Class: Retriable, Remedy: "check kafka.sasl.passwordFile", Err: err}
	}
	mechanism, err := s.mechanism(password)
	if err != nil {
		return nil, nil, &loginFailure{Class: Fatal, Remedy: "check kafka.sasl.user and kafka.sasl.password", Err: err}
	}
	return mechanism.Start(ctx)
}

func (s *SASL) mechanism(password string) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case ScramSHA256:
		return scram.Mechanism(scram.SHA256, s.User, password)
	case ScramSHA512:
		return scram.Mechanism(scram.SHA512, s.User, password)
	}
	return plain.Mechanism{Username: s.User, Password: password}, nil
}

func (s *SASL) check(encrypted bool) error {
	switch {
	case s.Mechanism == OAuthBearer:
		return s.OAuth.check()
	case s.Mechanism == AWSMSKIAM && !encrypted:
		return errors.New("option SASL.Mechanism (kafka.sasl.mechanism) AWS_MSK_IAM needs TLS: set kafka.tls")
	case s.Mechanism == AWSMSKIAM:
		return nil
	}
	return checkSecret("SASL.Password (kafka.sasl.password)", s.Password, s.PasswordFile)
}

// loginError finds the broker's judgement of a login, which kafka-go returns as an error of the connection.
func loginError(options *SASL, err error) error {
	var code kafka.Error
	if !errors.As(err, &code) {
		return nil
	}
	switch int16(code) {
	case codeSASLAuthenticationFailed, codeUnsupportedSASLMechanism, codeIllegalSASLState:
	default:
		return nil
	}
	message := strings.TrimPrefix(err.Error(), code.Error())
	return &Error{Code: int16(code), Message: strings.TrimPrefix(message, ": "), Request: options.request(), Needs: options.needs()}
}
