package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// enroll gets a producer id, and with it the right to write, which whoever had it before loses, also one who took it
// and is silent. It is only for Open, which finds what others have written meanwhile. In transactional delivery that
// ends the transaction that a crash left open. In idempotent delivery the partitions have yet to hear of it (fence).
// Where Kafka does not let idempotent delivery have the right, it goes on without.
func (r *right) enroll(ctx context.Context) error {
	if r.options.TransactionalID == "" {
		return r.enrollAnonymous(ctx)
	}
	began := r.now()
	var silent time.Time // since when whoever took the right has not signed
	err := r.persist(ctx, r.verb(), func(ctx context.Context) error {
		err := r.acquire(ctx)
		if errors.Is(err, errUnsigned) && silent.IsZero() {
			silent = r.now()
		}
		if errors.Is(err, errUnsigned) && r.now().Sub(silent) >= r.tuning.silence {
			before := r.owner
			r.owner = wire.NoProducer()
			if err = r.acquire(ctx); r.owner == wire.NoProducer() {
				r.owner = before // without an answer, the next attempt looks again who has it
			} else {
				silent = time.Time{}
			}
		}
		if wire.Code(err) == kerr.CoordinatorNotAvailable.Code && r.options.Delivery == Idempotent && r.now().Sub(began) > r.tuning.coordinator {
			return &sink.PermanentError{Err: wire.Explain(err)}
		}
		return err
	})
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || r.options.Delivery == Transactional || wire.Classify(err) == wire.Fenced {
		return err
	}
	r.withoutFence(err)
	return r.enrollAnonymous(ctx)
}

func (r *right) verb() string { return "open transactional id " + r.options.TransactionalID }

// hold sees to it, before something is written, that nobody else can write: not to topics that are new here, and not
// because the coordinator has forgotten who has the right. Where nobody answers, writing goes on: to the partitions the
// epoch is as good as before.
func (r *right) hold(ctx context.Context) error {
	if !r.owned || r.options.Delivery == Transactional {
		return nil
	}
	if err := r.fence(ctx, slices.Collect(maps.Values(r.known.topics))); err != nil {
		return err
	}
	if r.now().Sub(r.renewed) < r.tuning.renewal {
		return nil
	}
	err := r.lingering(ctx, r.keep)
	switch {
	case err == nil, ctx.Err() != nil, decided(err):
		return err
	case wire.Classify(err) == wire.Fatal:
		r.withoutFence(wire.Explain(err))
	default:
		r.again(err)
	}
	r.renewed = r.now().Add(time.Minute - r.tuning.renewal)
	return nil
}

// fence shuts out of the topics whoever had the right to write before, in idempotent delivery.
//
// A partition compares the epoch of every batch with the newest that it knows of the producer (KIP-98), and learns of
// ours by the markers of a transaction that has nothing in it. From then on nothing of an older epoch can come, however
// long it lay in a socket, so what the partitions hold is final. That a new epoch is handed out tells that all markers
// are written. Readers see nothing of it; offsets move by one.
func (r *right) fence(ctx context.Context, topics []*topic) error {
	const verb = "fence the topics"
	open := slices.DeleteFunc(partitionsOf(topics), func(p *partition) bool { return p.topic.fenced })
	if len(open) > 0 && r.owned && r.options.Delivery == Idempotent {
		for {
			err := r.join(ctx, verb, open, func(p *partition) error {
				return reopen("fence topic %s: it was deleted: open the sink again", p.topic.name)
			})
			if err == nil {
				err = r.persist(ctx, verb, func(ctx context.Context) error { return r.cluster.EndTransaction(ctx, r.tx(), false) })
			}
			if err == nil {
				err = r.persist(ctx, verb, r.keep)
			}
			if err == nil {
				break
			}
			if decided(err) || wire.Classify(err) != wire.Fenced {
				return err
			}
			r.again(err) // the transaction may have taken too long
			if err := r.persist(ctx, r.verb(), r.keep); err != nil {
				return err
			}
		}
	}
	for _, t := range topics {
		t.fenced = true
	}
	return nil
}

// join makes the partitions part of a transaction. gone makes an error of one whose topic was deleted.
func (r *right) join(ctx context.Context, verb string, partitions []*partition, gone func(*partition) error) error {
	names := map[string][]int32{}
	for _, p := range partitions {
		names[p.topic.name] = append(names[p.topic.name], p.number)
	}
	isGone := r.absence()
	return r.persist(ctx, verb, func(ctx context.Context) error {
		err := r.cluster.AddPartitions(ctx, r.tx(), names)
		if wire.Code(err) != kerr.UnknownTopicOrPartition.Code {
			return err
		}
		for i, p := range partitions {
			if (i == 0 || p.topic != partitions[i-1].topic) && isGone(ctx, p.topic) {
				return gone(p)
			}
		}
		return err
	})
}

// keep asks for the right once, of which the sink may have been told that it has it.
func (r *right) keep(ctx context.Context) error {
	err := r.acquire(ctx)
	if errors.Is(err, errUnsigned) {
		return reopen("%s: %w", r.verb(), err)
	}
	return err
}

// acquire asks once for the right to write, as the one who had it, so that a newer owner is not fenced by us (KIP-360).
// Who never had it takes it first, unsigned, from whoever has it.
func (r *right) acquire(ctx context.Context) error {
	if r.owner == wire.NoProducer() {
		producer, err := r.cluster.InitProducer(ctx, r.options.TransactionalID, r.tuning.unsigned(), wire.NoProducer())
		if err != nil {
			return err
		}
		r.owner, r.sign = producer, r.tuning.sign()
	}
	producer, err := r.cluster.InitProducer(ctx, r.options.TransactionalID, r.sign, r.owner)
	switch {
	case err == nil:
		r.owner, r.owned, r.renewed = producer, true, r.now()
		r.begin(producer)
	case wire.Classify(err) == wire.Fenced:
		return r.taken(ctx, err)
	}
	return err
}

// taken says whether it was another exporter that took the right from this sink.
func (r *right) taken(ctx context.Context, cause error) error {
	found, err := r.cluster.TransactionTimeout(ctx, r.options.TransactionalID)
	switch {
	case err == nil && (found == r.sign || found == r.tuning.unsigned()):
		return errUnsigned
	case err == nil:
		err = cause
	case wire.Classify(err) == wire.Retriable:
		return err
	default:
		err = fmt.Errorf("%w: who did is not known: %w: if there is no other exporter, a request came late: start this one again", cause, err)
	}
	return &sink.PermanentError{Fenced: true, Err: fmt.Errorf("%s: another exporter has taken it over: stop it, or give each its own kafka.transactionalId: %w",
		r.verb(), err)}
}

// unsigned is the transaction timeout of a request that takes the right from whoever has it.
func (t *tuning) unsigned() time.Duration { return t.transaction - time.Millisecond }

// sign draws a transaction timeout that hardly any other exporter has.
func (t *tuning) sign() time.Duration {
	return t.unsigned() - time.Duration(1+rand.Int64N(t.transaction.Milliseconds()/6))*time.Millisecond
}

// right is the right to write, which goes with the transactional id.
type right struct {
	*brokers
	known    *known
	producer wire.Producer
	owner    wire.Producer // as which the sink had the transactional id last; NoProducer is that it never had
	sign     time.Duration // the transaction timeout that says who it is
	renewed  time.Time     // when it got it last
	owned    bool          // the producer is the owner
	inTx     bool          // a transaction may be open
	unfenced bool          // it was told that there is no fence
}

func (r *right) enrollAnonymous(ctx context.Context) error {
	return r.persist(ctx, "get a producer id", func(ctx context.Context) error {
		producer, err := r.cluster.InitProducer(ctx, "", 0, wire.NoProducer())
		if err == nil {
			r.owned = false
			r.begin(producer)
		}
		return err
	})
}

// begin counts sequences anew, as each epoch does.
func (r *right) begin(producer wire.Producer) {
	r.producer, r.inTx = producer, false
	for _, p := range r.known.partitions() {
		p.sequence, p.frozen = 0, nil
	}
}

// withoutFence tells once that nobody is kept out.
func (r *right) withoutFence(err error) {
	if r.unfenced {
		return
	}
	r.unfenced = true
	r.tell("unfenced", fmt.Errorf("%w: until then a second exporter on the same topics is not kept out, and what a slow broker still holds of a killed one "+
		"may come late, after newer states of the same objects", err))
}

func (r *right) tx() wire.Tx {
	return wire.Tx{TransactionalID: r.options.TransactionalID, Producer: r.producer}
}

// abort ends the transaction that a failed Write left open, so that readers do not wait for its timeout. If its commit
// is decided already, the coordinator refuses that, which is as well.
func (r *right) abort(ctx context.Context) error {
	if !r.inTx {
		return nil
	}
	err := r.cluster.EndTransaction(ctx, r.tx(), false)
	if err != nil && wire.Classify(err) != wire.Retriable {
		return nil
	}
	return err
}
