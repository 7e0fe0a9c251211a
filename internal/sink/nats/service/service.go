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

// Options configures a Service. For Check alone the functions are not needed.
type Options struct {
	Connection *conn.Options
	Subject    string   // the endpoints are below it: "kubecdc.prod" and "snapshot" give "kubecdc.prod.snapshot"
	Inboxes    []string // what the subjects of answers begin with, each with a dot at its end
	Version    string   // of the program
	Metadata   map[string]string
	// Endpoints answer questions, by their names.
	Endpoints map[string]func(ctx context.Context, question []byte) ([]byte, error)
	Code      func(error) int                    // of the header Nats-Service-Error-Code, as in HTTP
	Failed    func(error)                        // is told why nothing can be asked; it is tried again
	Serving   func()                             // is told that everything can be asked
	Refused   func(endpoint string, cause error) // is told of a question that nobody gets an answer to
}

// Service is the micro service.
type Service struct {
	options   Options
	questions chan question
	stats     micro.Stats // of the goroutine that answers
}

// question is one that came.
type question struct {
	*natsgo.Msg
	endpoint int // its place in stats, or statistics
}

// statistics is the question of how many questions came.
const statistics = -1

// New returns a service that does not run.
func New(options Options) *Service {
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
	to := *s.options.Connection
	to.Denied = func(err error) { s.options.Refused("an answer", err) }
	c, err := conn.Dial(ctx, &to)
	if err != nil {
		return false, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	running, cancel := context.WithCancel(ctx)
	defer cancel() // an endpoint waits no more
	err = s.subscribe(running, c)
	if err == nil {
		err = c.Settle(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("serve %s.>: %w", s.options.Subject, err)
	}
	s.options.Serving()
	return true, s.answer(ctx, c)
}

// subscribe makes the service anew on the connection. Its endpoints hand over for as long as ctx lives.
func (s *Service) subscribe(ctx context.Context, c *conn.Conn) error {
	identity := micro.ServiceIdentity{Name: "kubecdc", ID: strings.TrimPrefix(c.NC.NewInbox(), conn.Inboxes+"."), Version: semantic(s.options.Version), Metadata: s.options.Metadata}
	info := micro.Info{ServiceIdentity: identity, Type: micro.InfoResponseType,
		Description: "Snapshots and state of an exporter of changes in Kubernetes.", Endpoints: []micro.EndpointInfo{}}
	s.stats = micro.Stats{ServiceIdentity: identity, Type: micro.StatsResponseType, Started: time.Now().UTC()}
	hand := func(endpoint int) natsgo.MsgHandler {
		return func(m *natsgo.Msg) {
			select {
			case s.questions <- question{m, endpoint}:
			case <-ctx.Done():
			}
		}
	}
	for i, name := range slices.Sorted(maps.Keys(s.options.Endpoints)) {
		subject := s.options.Subject + "." + name
		subscribed, err := c.NC.QueueSubscribe(subject, micro.DefaultQueueGroup, hand(i))
		if err == nil {
			err = subscribed.SetPendingLimits(waiting, waitingBytes)
		}
		if err != nil {
			return err
		}
		info.Endpoints = append(info.Endpoints, micro.EndpointInfo{Name: name, Subject: subject, QueueGroup: micro.DefaultQueueGroup})
		s.stats.Endpoints = append(s.stats.Endpoints, &micro.EndpointStats{Name: name, Subject: subject, QueueGroup: micro.DefaultQueueGroup})
	}
	say := func(document any) natsgo.MsgHandler {
		return func(m *natsgo.Msg) { s.say(c, m, document) }
	}
	return errors.Join(
		discoverable(c, &identity, micro.PingVerb, say(micro.Ping{ServiceIdentity: identity, Type: micro.PingResponseType})),
		discoverable(c, &identity, micro.InfoVerb, say(info)),
		discoverable(c, &identity, micro.StatsVerb, hand(statistics)))
}

// discoverable answers what all micro services are asked, in the three ways to ask it.
func discoverable(c *conn.Conn, of *micro.ServiceIdentity, verb micro.Verb, answer natsgo.MsgHandler) error {
	for _, who := range [][2]string{{}, {of.Name}, {of.Name, of.ID}} {
		subject, err := micro.ControlSubject(verb, who[0], who[1])
		if err == nil {
			_, err = c.NC.Subscribe(subject, answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say answers with a document of the library's, which can be encoded.
func (s *Service) say(c *conn.Conn, to *natsgo.Msg, document any) {
	if text, err := json.Marshal(document); err == nil && s.answers(to.Reply) {
		_ = c.NC.Publish(to.Reply, text)
	}
}

var errLost = errors.New("the connection is lost: check that the server is up")

// answer answers what comes, until nothing more can come of the connection.
func (s *Service) answer(ctx context.Context, c *conn.Conn) error {
	for {
		select {
		case q := <-s.questions:
			s.reply(ctx, c, &q)
		case <-c.Changed:
			err := errLost
			if c.NC.IsConnected() {
				err = c.Settle(ctx) // the server has the subscriptions
			}
			switch {
			case err == nil:
				s.options.Serving()
			case c.Over() == nil:
				s.options.Failed(err)
				if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // it may answer later
					c.Changed.Ring()
				}
			}
		case <-c.Done():
			return c.Over()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reply answers one question. An answer that cannot be sent is for nobody.
func (s *Service) reply(ctx context.Context, c *conn.Conn, q *question) {
	if q.endpoint == statistics {
		s.say(c, q.Msg, s.stats)
		return
	}
	begun, stats := time.Now(), s.stats.Endpoints[q.endpoint]
	text, code, err := s.ask(ctx, c, stats.Name, q.Msg)
	stats.NumRequests++
	stats.ProcessingTime += time.Since(begun)
	stats.AverageProcessingTime = stats.ProcessingTime / time.Duration(stats.NumRequests)
	answer := natsgo.NewMsg(q.Reply)
	if answer.Data = text; err != nil {
		answer.Header.Set(micro.ErrorHeader, description(err.Error()))
		answer.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(code))
		answer.Data, _ = json.Marshal(map[string]string{"error": err.Error()}) // of texts it cannot fail
		stats.NumErrors++
		stats.LastError = strconv.Itoa(code) + ":" + description(err.Error())
	}
	if s.answers(q.Reply) {
		_ = c.NC.PublishMsg(answer)
	}
}

// ask is the answer to the question, and the code of its error. Who wants it where it must not go is not heard.
func (s *Service) ask(ctx context.Context, c *conn.Conn, name string, m *natsgo.Msg) (text []byte, code int, err error) {
	if !s.answers(m.Reply) && m.Reply != "" && !strings.HasPrefix(m.Reply, acknowledgement) {
		err := fmt.Errorf("its answer was to go to subject %.100q: ask for it below %s, or allow another place with nats.service.inboxes",
			m.Reply, strings.Join(s.options.Inboxes, " or "))
		s.options.Refused(name, err)
		return nil, 500, err
	}
	if size := len(m.Data); size > maxQuestion {
		return nil, 413, fmt.Errorf("a question of %d bytes: want %d at most", size, maxQuestion)
	}
	text, err = s.options.Endpoints[name](ctx, m.Data)
	if limit := c.NC.MaxPayload(); err == nil && int64(len(text)) > limit {
		return nil, 507, fmt.Errorf("an answer of %d bytes, and the server takes %d: raise its max_payload", len(text), limit)
	}
	if err != nil {
		code = s.options.Code(err)
	}
	return text, code, err
}

// What a stream plays back has the first in the place of a subject for the answer. The second is where a server takes
// answers for another account. It lets no client name either.
const (
	acknowledgement = "$JS.ACK."
	otherAccount    = "_R_."
)

// answers says whether answers go to the subject. Whoever asks names it, and the answer has the rights of the exporter:
// it could be a record, a request to JetStream, or an acknowledgement to the exporter itself.
func (s *Service) answers(subject string) bool {
	below := func(prefix string) bool { return strings.HasPrefix(subject, prefix) }
	return (below(otherAccount) || slices.ContainsFunc(s.options.Inboxes, below)) && !below(conn.Inboxes+".") &&
		!strings.ContainsAny(subject, "*>") && !strings.Contains(subject+".", "..")
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
