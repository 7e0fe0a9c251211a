package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

const (
	// maxQuestion is the most bytes that a question may have.
	maxQuestion = 64 << 10
	// waiting and waitingBytes are what may wait of one endpoint. A question that is too large for an answer in words
	// fits in, too.
	waiting      = 64
	waitingBytes = 512 << 10
	// maxDescription is the most bytes of an error in a header; the body has all of it.
	maxDescription = 500
)

// Answer answers a question. Its error is a *Refusal where the asker can do something about it.
type Answer func(ctx context.Context, question []byte) ([]byte, error)

// Refusal is the answer to a question that is not followed.
type Refusal struct {
	Code int // of the header Nats-Service-Error-Code, as in HTTP
	Text string
}

func (e *Refusal) Error() string { return e.Text }

// Options configures a Service. All but Version, Metadata, Failed and Serving are needed.
type Options struct {
	Connection *conn.Options
	Subject    string // the endpoints are below it: "kubecdc.prod" and "snapshot" give "kubecdc.prod.snapshot"
	Version    string // of the program
	Metadata   map[string]string
	Endpoints  map[string]Answer // by their names
	Failed     func(error)       // is told why nothing can be asked; it is tried again
	Serving    func()            // is told that everything can be asked
}

// Service is the micro service.
type Service struct {
	options   Options
	questions chan question
}

// question is one that came.
type question struct {
	request micro.Request
	answer  Answer
}

// New fills in what is left out.
func New(options Options) *Service {
	if options.Failed == nil {
		options.Failed = func(error) {}
	}
	if options.Serving == nil {
		options.Serving = func() {}
	}
	return &Service{options: options, questions: make(chan question)}
}

// Run answers until ctx ends. Then nothing of it is left.
func (s *Service) Run(ctx context.Context) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
	for {
		served, err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		s.options.Failed(err)
		if served {
			wait.Reset()
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}

// serve answers over one connection, for as long as something comes of it. The library reconnects by itself.
func (s *Service) serve(ctx context.Context) (served bool, err error) {
	c, err := conn.Dial(ctx, s.options.Connection)
	if err != nil {
		return false, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	running, cancel := context.WithCancel(ctx)
	defer cancel() // an endpoint waits no more
	service, err := micro.AddService(c.NC, micro.Config{
		Name: "kubecdc", Version: semantic(s.options.Version), Metadata: s.options.Metadata,
		Description: "Snapshots and state of an exporter of changes in Kubernetes.",
	})
	if err == nil {
		defer service.Stop() // the connection ends anyway
		err = s.register(running, service)
	}
	if err == nil {
		err = c.Settle(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("serve %s.>: %w", s.options.Subject, err)
	}
	s.options.Serving()
	return true, s.answer(ctx, c)
}

// register adds the endpoints, which hand over for as long as ctx lives.
func (s *Service) register(ctx context.Context, service micro.Service) error {
	group := service.AddGroup(s.options.Subject)
	for _, name := range slices.Sorted(maps.Keys(s.options.Endpoints)) {
		answer := s.options.Endpoints[name]
		hand := micro.HandlerFunc(func(request micro.Request) {
			select {
			case s.questions <- question{request, answer}:
			case <-ctx.Done():
			}
		})
		if err := group.AddEndpoint(name, hand, micro.WithEndpointPendingLimits(waiting, waitingBytes)); err != nil {
			return err
		}
	}
	return nil
}

// answer answers what comes, until nothing more can come of the connection.
func (s *Service) answer(ctx context.Context, c *conn.Conn) error {
	dead, closed := c.Ends()
	for {
		select {
		case q := <-s.questions:
			s.reply(ctx, c, &q)
		case <-c.Changed:
			s.tell(c)
		case <-dead:
			return c.Over()
		case <-closed:
			return c.Over()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell says whether the connection is there.
func (s *Service) tell(c *conn.Conn) {
	if c.NC.IsConnected() {
		s.options.Serving()
	} else if c.Over() == nil {
		s.options.Failed(errLost)
	}
}

var errLost = errors.New("the connection is lost: check that the server is up")

// reply answers one question. An answer that cannot be sent is for nobody.
func (s *Service) reply(ctx context.Context, c *conn.Conn, q *question) {
	text, err := []byte(nil), error(nil)
	if size := len(q.request.Data()); size > maxQuestion {
		err = &Refusal{413, fmt.Sprintf("a question of %d bytes: want %d at most", size, maxQuestion)}
	} else {
		text, err = q.answer(ctx, q.request.Data())
	}
	if limit := c.NC.MaxPayload(); err == nil && int64(len(text)) > limit {
		err = &Refusal{507, fmt.Sprintf("an answer of %d bytes, and the server takes %d: raise its max_payload", len(text), limit)}
	}
	if err == nil {
		_ = q.request.Respond(text)
		return
	}
	code := 500
	var refused *Refusal
	if errors.As(err, &refused) {
		code = refused.Code
	}
	_ = q.request.Error(strconv.Itoa(code), description(err.Error()), problem(err.Error()))
}

// description is the text as a header can have it: on one line, and short.
func description(text string) string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return cmp.Or(line[:min(len(line), maxDescription)], "failed")
}

// problem is the body of an answer that is an error.
func problem(text string) []byte {
	body, _ := json.Marshal(map[string]string{"error": text}) // of texts it cannot fail
	return body
}

// semantic is the version in the form that the library wants (SemVer), 0.0.0 where it has none.
func semantic(version string) string {
	version = strings.TrimPrefix(version, "v")
	if regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`).MatchString(version) {
		return version
	}
	return "0.0.0"
}

// Check connects, and looks whether the subscriptions are permitted. It takes no question.
func (s *Service) Check(ctx context.Context) error {
	c, err := conn.Dial(ctx, s.options.Connection)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	ignored := make(chan *natsgo.Msg, 1) // what comes meanwhile is for those who serve
	for name := range s.options.Endpoints {
		if _, err := c.NC.ChanSubscribe(s.options.Subject+"."+name, ignored); err != nil {
			return err
		}
	}
	if _, err := c.NC.ChanSubscribe("$SRV.PING", ignored); err != nil {
		return err
	}
	if err := c.Settle(ctx); err != nil {
		return fmt.Errorf("serve %s.>: %w", s.options.Subject, err)
	}
	return nil
}
