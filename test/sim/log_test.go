package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// message is one record as it lies in a sink's log.
type message struct {
	id    string
	op    string
	value string
	seq   int // the order of arrival over all partitions
}

// sinkLog is what a sink writes to: it outlives the exporter's lives. It has one partition, or several as a topic has;
// of one object and of one stream's frames, all records are in one of them.
type sinkLog struct {
	name       string
	partitions [][]message
	arrived    int
	lostIDs    map[string]bool // were durable, and are no more
	rejects    bool            // takes no message that is too large
	last       lastWords
	registry   *registry
	owner      *life // whose opening has fenced all others, where the log has several partitions

	// faults that the script has ordered, each for the next calls
	before, after, partial, stall, openFails int
	away                                     time.Time // until then nobody answers
	broken                                   time.Time // until then everything fails as only a person can mend it
}

func newSinkLog(w *world, spec sinkSpec) *sinkLog {
	return &sinkLog{name: spec.Name, registry: newRegistry(w), partitions: make([][]message, spec.Partitions), lostIDs: map[string]bool{}, rejects: spec.Rejects}
}

// all are the log's messages in the order of their arrival.
func (g *sinkLog) all() []message {
	var merged []message
	at := make([]int, len(g.partitions))
	for {
		best := -1
		for p, part := range g.partitions {
			if at[p] < len(part) && (best < 0 || part[at[p]].seq < g.partitions[best][at[best]].seq) {
				best = p
			}
		}
		if best < 0 {
			return merged
		}
		merged = append(merged, g.partitions[best][at[best]])
		at[best]++
	}
}

// partitionOf hashes resource, namespace and name.
func (g *sinkLog) partitionOf(id string) int {
	if len(g.partitions) == 1 {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(strings.Join(strings.SplitN(id, "/", 5)[1:4], "/")))
	return int(h.Sum32() % uint32(len(g.partitions)))
}

// append makes the messages durable.
func (g *sinkLog) append(m *sink.Message) {
	p := g.partitionOf(m.ID)
	g.arrived++
	g.partitions[p] = append(g.partitions[p], message{m.ID, m.Op, string(m.Value), g.arrived})
}

// truncate loses the newest n messages, and the connections with them.
func (g *sinkLog) truncate(n int) {
	g.last = lastWords{}
	all := g.all()
	for _, m := range all[max(0, len(all)-n):] {
		g.lostIDs[m.id] = true
		p := g.partitionOf(m.id)
		g.partitions[p] = g.partitions[p][:len(g.partitions[p])-1]
	}
}

// reaches says whether the log holds everything before the mark, and that is something.
func (g *sinkLog) reaches(mark sink.Mark) bool {
	_, err := g.behind(mark)
	return err == nil && strings.Trim(string(mark), "0,") != ""
}

func (g *sinkLog) mark() sink.Mark {
	var offsets []string
	for _, part := range g.partitions {
		offsets = append(offsets, strconv.Itoa(len(part)))
	}
	return sink.Mark(strings.Join(offsets, ","))
}

// after are the ids after the mark, in the order of their arrival within each partition.
func (g *sinkLog) behind(mark sink.Mark) ([]string, error) {
	var ids []string
	for p, text := range strings.Split(string(mark), ",") {
		offset, err := strconv.Atoi(text)
		if err != nil || p >= len(g.partitions) {
			return nil, fmt.Errorf("mark %q is none of log %s", mark, g.name)
		}
		if offset > len(g.partitions[p]) {
			return nil, &sink.LostError{Log: g.name, Want: string(mark), Have: string(g.mark())}
		}
		for _, m := range g.partitions[p][offset:] {
			ids = append(ids, m.id)
		}
	}
	return ids, nil
}

// logSink is a sink as the contract has it, in one life of the exporter.
type logSink struct {
	log     *sinkLog
	life    *life
	open    bool
	inside  bool           // a call is under way
	written bool           // a Write was called
	end     sink.Mark      // where this sink left the log
	known   bool           // a batch was written: whoever writes there now is no predecessor
	hurried []sink.Message // that it was given, and the log does not have
	doubt   []string       // ids of the last batch that failed: what may be in the log after that
}

// errBroken is what only a person can mend.
var errBroken = &sink.PermanentError{Err: errors.New("the password is wrong")}

// topicSink is one whose whole log can be read.
type topicSink struct{ *logSink }

func newLogSink(log *sinkLog, l *life) sink.Sink {
	s := &logSink{log: log, life: l}
	if log.readable() {
		return topicSink{s}
	}
	return s
}

// readable says whether the log is one of those that can be read.
func (g *sinkLog) readable() bool { return len(g.partitions) > 1 }

// Reread is sink.Rereader's.
func (s topicSink) Reread(ctx context.Context, each func(id string) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.life.linger(ctx, 0, 50); err != nil {
		return err
	}
	s.life.world.mu.Lock()
	held := s.log.all()
	s.life.noteLocked("sink", fmt.Sprintf("%s recalls %d", s.log.name, len(held)))
	s.life.world.mu.Unlock()
	for _, m := range held {
		if err := each(m.id); err != nil {
			return err
		}
	}
	return nil
}

// tooLarge is the end of an object that a log which rejects does not take.
const tooLarge = "7}"

func (s *logSink) enter() error {
	if err := s.life.step("sink"); err != nil {
		return err
	}
	if err := s.life.awake(); err != nil {
		return err
	}
	w := s.life.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.inside {
		w.violateLocked("I3", "two calls of sink %s at once", s.log.name)
	}
	s.inside = true
	return nil
}

func (s *logSink) leave() {
	s.life.world.mu.Lock()
	s.inside = false
	s.life.world.mu.Unlock()
}

// Open is sink.Sink's.
func (s *logSink) Open(ctx context.Context, at sink.Opening) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	for first := true; ; first = false {
		if err := s.life.linger(ctx, 1, 3); err != nil {
			return err
		}
		if s.ready() {
			break
		}
		if s.written && first { // the caller tries again, as it must
			return errors.New("the broker does not answer")
		}
	}
	ids, err := s.openAt(&at)
	if err != nil {
		return err
	}
	found := at.After()
	for _, id := range ids {
		found(id)
	}
	return nil
}

// ready says whether the broker answers.
func (s *logSink) ready() bool {
	s.life.world.mu.Lock()
	defer s.life.world.mu.Unlock()
	if (s.written || s.life.world.script.Late) && time.Now().Before(s.log.away) {
		return false
	}
	if take(&s.log.openFails) {
		s.life.noteLocked("sink", s.log.name+" does not open")
		return false
	}
	return true
}

func (s *logSink) openAt(at *sink.Opening) ([]string, error) {
	mark := at.Mark
	w := s.life.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.life.dead {
		return nil, errDead
	}
	if time.Now().Before(s.log.broken) {
		s.life.noteLocked("sink", s.log.name+" refuses for good")
		return nil, errBroken
	}
	if at.Again && s.isFenced() {
		return nil, errShutOut
	}
	if since, err := s.log.behind(s.end); at.Again && err == nil {
		if i := slices.IndexFunc(since, func(id string) bool { return !slices.Contains(s.doubt, id) }); i >= 0 {
			return nil, &sink.LateError{Err: fmt.Errorf("%s came after the log was opened", since[i])}
		}
	}
	s.open, s.end, s.doubt = true, s.log.mark(), nil
	s.takeOver(at)
	if mark == "" {
		return nil, nil
	}
	ids, err := s.log.behind(mark)
	s.life.noteLocked("sink", fmt.Sprintf("%s opens at %s, log ends at %s, %d to replay, %v", s.log.name, mark, s.end, len(ids), err))
	return ids, err
}

// Write is sink.Sink's. A crash may come before the batch, in its middle, and after it.
func (s *logSink) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	defer s.leave()
	w := s.life.world
	w.mu.Lock()
	s.written = s.written || len(batch) > 0
	stalled := len(batch) > 0 && take(&s.log.stall)
	w.mu.Unlock()
	pause := [2]int{0, 3}
	if stalled {
		pause = [2]int{3000, 40_000}
	}
	if err := s.life.linger(ctx, pause[0], pause[1]); err != nil {
		s.leaveWords(batch)
		return "", err
	}
	if err := s.awaitBack(ctx, len(batch)); err != nil {
		return "", err
	}
	s.hearWords(len(batch))
	if s.hurries() && len(batch) > 0 {
		return s.hurry(batch)
	}
	return s.write(batch)
}

// lastWords are of a life that has crashed while it wrote them: the network still has them. They fit after the mark
// alone, so an open log that has fenced its writers, as a topic does, has none.
type lastWords struct {
	batch   []sink.Message
	behind  sink.Mark
	foreign bool // the sink has become new since
}

// leaveWords leaves the batch to the network, if the life has crashed.
func (s *logSink) leaveWords(batch []sink.Message) {
	w := s.life.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.life.crashed && s.open && s.end == s.log.mark() {
		s.leaveWordsLocked(batch)
	}
}

// leaveWordsLocked leaves what the log does not have yet.
func (s *logSink) leaveWordsLocked(batch []sink.Message) {
	if len(s.log.partitions) > 1 || len(batch) == 0 {
		return
	}
	s.log.last = lastWords{behind: s.log.mark()}
	for _, m := range batch {
		m.Value = slices.Clone(m.Value) // the pipeline's, from now on
		s.log.last.batch = append(s.log.last.batch, m)
	}
}

// hearWords puts a part of the last words of an earlier life into the log, if they still fit: often when the next one
// has opened it. The rest may come later.
func (s *logSink) hearWords(messages int) {
	w := s.life.world
	w.mu.Lock()
	defer w.mu.Unlock()
	last := &s.log.last
	if len(last.batch) == 0 || messages == 0 || s.life.dead || !s.open || last.behind != s.log.mark() {
		return
	}
	before := s.log.arrived
	for range 1 + (int(w.script.Seed)+s.log.arrived)%len(last.batch) {
		if s.rejects(&last.batch[0]) {
			last.batch = nil
			return
		}
		s.log.append(&last.batch[0])
		s.life.noteLocked("sink", s.log.name+" takes the last words "+last.batch[0].ID)
		last.batch = last.batch[1:]
	}
	if last.foreign && w.judge.joined[s.log.name] == before { // the sink has written nothing since
		w.judge.joined[s.log.name] = s.log.arrived
	}
	last.behind = s.log.mark()
}

// awaitBack waits for a broker that is away.
func (s *logSink) awaitBack(ctx context.Context, messages int) error {
	for messages > 0 && !s.isBack() {
		if err := s.life.linger(ctx, 500, 1500); err != nil {
			return err
		}
	}
	return nil
}

func (s *logSink) isBack() bool {
	s.life.world.mu.Lock()
	defer s.life.world.mu.Unlock()
	return !time.Now().Before(s.log.away)
}

func (s *logSink) write(batch []sink.Message) (sink.Mark, error) {
	w := s.life.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.life.dead:
		return "", errDead
	case time.Now().Before(s.log.broken) && len(batch) > 0:
		return "", errBroken
	case !s.open:
		w.violateLocked("I3", "sink %s is written to while it is not open", s.log.name)
	case s.isFenced():
		s.open = false
		return "", errShutOut
	case s.end != s.log.mark() && w.script.Without != withoutFence: // as an expected sequence tells
		text, err := s.fail("the log is not where this writer left it")
		return text, &sink.LateError{Err: err}
	case len(batch) == 0:
		return s.log.mark(), nil
	case take(&s.log.before):
		return s.fail("the connection broke before the batch")
	}
	keep, failing := len(batch), ""
	if take(&s.log.partial) {
		keep, failing = s.life.random.IntN(len(batch)+1), "the connection broke within the batch"
	} else if take(&s.log.after) {
		failing = "the connection broke after the batch"
	}
	return s.store(batch, keep, failing)
}

// store appends the batch, of each partition a prefix where it fails. A frame is there only with all of its resource
// before it.
func (s *logSink) store(batch []sink.Message, keep int, failing string) (sink.Mark, error) {
	s.doubt = nil
	for i := range batch {
		s.doubt = append(s.doubt, batch[i].ID)
	}
	broken := make([]bool, len(s.log.partitions)) // which partitions take nothing more
	lacking := map[string]bool{}                  // of which resources something is not there
	for i := range batch {
		if i == len(batch)/2 {
			if err := s.life.stepLocked("sink"); err != nil {
				s.leaveWordsLocked(batch[min(i, keep):])
				return "", err
			}
		}
		p := s.log.partitionOf(batch[i].ID)
		resource, rest, _ := strings.Cut(batch[i].Object(), "/")
		isFrame := strings.HasSuffix(rest, "//")
		broken[p] = broken[p] || i == keep || lacking[resource] && isFrame
		if broken[p] {
			lacking[resource] = true
			continue
		}
		if s.rejects(&batch[i]) {
			if i >= keep {
				break
			}
			s.life.noteLocked("sink", s.log.name+" rejects "+batch[i].ID)
			s.end = s.log.mark()
			return s.end, &sink.RejectedError{Index: i, Reason: "too_large", Err: errors.New("message is too large")}
		}
		s.log.append(&batch[i])
		if s.life.spec.Strict && salted(string(batch[i].Value)) {
			s.life.world.violateLocked("I9", "sink %s is given %s with what today's rules leave out", s.log.name, batch[i].ID)
		}
		s.life.noteLocked("sink", s.log.name+" takes "+batch[i].ID+behind(&batch[i]))
	}
	if failing != "" {
		return s.fail(failing)
	}
	s.end, s.known = s.log.mark(), true
	return s.end, s.life.stepLocked("sink")
}

// behind is in a report what a gap follows, and why.
func behind(m *sink.Message) string {
	if m.Op != "gap" {
		return ""
	}
	return fmt.Sprintf(" behind %q, %s", field(string(m.Value), `"lastDelivered":"`), field(string(m.Value), `"reason":"`))
}

// rejects says whether the log never takes the message.
func (s *logSink) rejects(m *sink.Message) bool {
	return s.log.rejects && strings.HasSuffix(string(m.Value), tooLarge+"}") && strings.Contains(string(m.Value), `"salt":`)
}

func (s *logSink) fail(text string) (sink.Mark, error) {
	s.open = false
	s.life.noteLocked("sink", s.log.name+": "+text)
	return "", errors.New(text)
}

// Close is sink.Sink's.
func (s *logSink) Close(context.Context) error {
	s.life.world.mu.Lock()
	defer s.life.world.mu.Unlock()
	s.catchUp()
	s.open = false
	return nil
}

// linger lets some of the world's time pass, in milliseconds, and returns early where the life or the context ends.
func (l *life) linger(ctx context.Context, least, most int) error {
	l.world.mu.Lock()
	d := time.Duration(least+l.random.IntN(most-least+1)) * time.Millisecond
	l.world.mu.Unlock()
	if d == 0 {
		return l.awake()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.awake()
	case <-l.died:
		return errDead
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
