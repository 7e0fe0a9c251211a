package kafka

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// judgeLimit bounds the reading of one topic.
const judgeLimit = 5 * time.Minute

// Record is one record of a topic. Key and Value are nil where Kafka has null,
// and empty where it has no bytes.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Timestamp time.Time // with milliseconds
	Key       []byte
	Value     []byte // nil: a tombstone
	Headers   []Header
}

// Header is one header of a Record; names may come twice.
type Header struct {
	Key   string
	Value []byte
}

// JudgeOptions say how a topic is read.
type JudgeOptions struct {
	// ReadCommitted leaves out what aborted transactions wrote, and stops before the
	// first one that is open. A transaction that was committed a moment ago may still
	// be open for readers: see AwaitTransactions.
	ReadCommitted bool
}

// Consume reads a topic, from its start to its present end, with Java's own
// consumer. The records are sorted by partition and offset. It takes a second
// for the JVM; where Kafka is not real, it is ConsumeFast.
func (c *Cluster) Consume(tb testing.TB, topic string, options JudgeOptions) []Record {
	tb.Helper()
	if !c.Real() {
		return c.ConsumeFast(tb, topic, options)
	}
	isolation := "read_uncommitted"
	if options.ReadCommitted {
		isolation = "read_committed"
	}
	var records []Record
	err := c.judge(tb.Context(), func(line string) error {
		r, err := parseRecord(topic, line)
		records = append(records, r)
		return err
	}, "consume", strings.Join(c.Brokers(), ","), topic, isolation)
	if err != nil {
		tb.Fatalf("consume %s with Java: %v", topic, err)
	}
	sortRecords(records)
	return records
}

// judge runs our Java program and gives each line it prints to take, other than
// the last, which says that all was printed.
func (c *Cluster) judge(ctx context.Context, take func(line string) error, args ...string) error {
	if !c.Real() {
		return errors.New("it needs the real Kafka; call RequireReal first")
	}
	ctx, cancel := context.WithTimeout(ctx, judgeLimit)
	defer cancel()
	command := c.install.java("512m", "warn", "Judge", args...)
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := child.Run(cmd); err != nil {
		return fmt.Errorf("%w: %s", errors.Join(err, ctx.Err()), problem.String())
	}
	text, complete := strings.CutSuffix(out.String(), "end\n")
	if !complete {
		return fmt.Errorf("it stopped in the middle: %s", problem.String())
	}
	for line := range strings.Lines(text) {
		if err := take(strings.TrimSuffix(line, "\n")); err != nil {
			return fmt.Errorf("read line %q: %w", line, err)
		}
	}
	return nil
}

// parseRecord reads what Judge.print wrote.
func parseRecord(topic, line string) (Record, error) {
	fields := strings.Split(line, "\t")
	if len(fields) < 5 || len(fields)%2 == 0 {
		return Record{}, fmt.Errorf("it has %d fields", len(fields))
	}
	partition, err1 := strconv.Atoi(fields[0])
	offset, err2 := strconv.ParseInt(fields[1], 10, 64)
	timestamp, err3 := strconv.ParseInt(fields[2], 10, 64)
	key, err4 := parseBytes(fields[3])
	value, err5 := parseBytes(fields[4])
	r := Record{Topic: topic, Partition: partition, Offset: offset, Timestamp: time.UnixMilli(timestamp), Key: key, Value: value}
	err := errors.Join(err1, err2, err3, err4, err5)
	for pair := range slices.Chunk(fields[5:], 2) {
		name, err1 := parseBytes(pair[0])
		value, err2 := parseBytes(pair[1])
		r.Headers = append(r.Headers, Header{Key: string(name), Value: value})
		err = errors.Join(err, err1, err2)
	}
	return r, err
}

// parseBytes reads Base64; a minus sign is null.
func parseBytes(text string) ([]byte, error) {
	if text == "-" {
		return nil, nil
	}
	return base64.StdEncoding.DecodeString(text)
}

func sortRecords(records []Record) {
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
}
