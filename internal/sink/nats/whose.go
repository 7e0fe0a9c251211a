package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// inspector tells our records in a stream from those of others.
type inspector struct {
	*session
	goesOn sync.Once // says that the stream is one of the former default name
}

// locate finds which stream is ours: the one of the options, or where that is not there one of the name that it had by
// default before.
func (i *inspector) locate(ctx context.Context, want *mark) error {
	i.name = i.options.Stream
	before := i.options.Formerly
	if before == "" || want != nil && want.Stream == i.options.Stream {
		return nil
	}
	marked := want != nil && want.Stream == before
	if !marked {
		if _, err := i.lookupIfAllowed(ctx, i.options.Stream); codeOf(err) != codeNotFound {
			return nil // it is there, or what follows says what is wrong
		}
	}
	info, err := i.lookupIfAllowed(ctx, before)
	var denied *conn.DeniedError
	switch {
	case codeOf(err) == codeNotFound, errors.As(err, &denied):
		return nil
	case err != nil:
		return err
	case !marked:
		if ours, err := i.mayGoOn(ctx, info); err != nil || !ours {
			return err
		}
	}
	i.name = before
	i.goesOn.Do(func() {
		i.options.Notice(fmt.Sprintf("go on in stream %s, which was the default before; a new one would be %s", before, i.options.Stream))
	})
	return nil
}

// mayGoOn says whether a stream of the former name takes our subjects, and holds our records last, or nothing.
func (i *inspector) mayGoOn(ctx context.Context, info *jetstream.StreamInfo) (bool, error) {
	for _, subject := range i.options.Subjects {
		if !coveredByAny(info.Config.Subjects, subject) {
			return false, nil
		}
	}
	last, err := i.fetch(ctx, info.Config.Name, map[string]any{"last_by_subj": ">"})
	if err != nil || last == nil {
		return last == nil && err == nil, ignoreDenied(err)
	}
	_, notOurs := change.ParseID(last.Header(sink.HeaderID))
	return notOurs == nil && i.options.Judge(last) == nil, nil
}

// inspect refuses a stream that holds another cluster's records where ours would go. Of a stream that is not shared,
// all of it is that place.
func (i *inspector) inspect(ctx context.Context, info *jetstream.StreamInfo) error {
	if info.State.Msgs == 0 {
		return nil
	}
	var queries []map[string]any
	for _, subject := range i.options.Subjects {
		queries = append(queries, map[string]any{"last_by_subj": subject}, map[string]any{"seq": 1, "next_by_subj": subject})
	}
	if !i.options.Shared {
		queries = append(queries, map[string]any{"last_by_subj": ">"}, map[string]any{"seq": 1, "next_by_subj": ">"})
	}
	for _, query := range queries {
		stored, err := i.fetch(ctx, i.name, query)
		if err == nil && stored != nil {
			err = i.refuse(stored)
		}
		if err := ignoreDenied(err); err != nil {
			return err
		}
	}
	return nil
}

// refuse is the verdict on a message that is in the place of ours: nil for one of ours and of nobody's. Two clusters
// may share a stream under two names.
func (i *inspector) refuse(stored *sink.Stored) error {
	err := i.options.Judge(stored)
	var foreign *sink.ForeignError
	switch {
	case !errors.As(err, &foreign):
		return err
	case foreign.Same:
		return permanent("open stream %s: %w", i.name, err)
	case i.options.Shared:
		return nil
	case i.options.KV != "":
		return permanent("open bucket %s: %w: give each cluster a bucket of its own with the key kv", i.options.KV, err)
	}
	return permanent("open stream %s: %w: give each cluster a stream of its own with the key stream, or say for both that it is shared, with the key shared",
		i.name, err)
}

// delivered gives the ids of our messages after the mark to found, and says how many messages there are gone.
func (i *inspector) delivered(ctx context.Context, want *mark, found func(id string)) (gone uint64, err error) {
	after, last := want.Seq, i.stream.place.Seq
	for after < last {
		n := int(min(concurrency, last-after))
		entries, err := i.read(ctx, after+1, n)
		if err != nil {
			return 0, err
		}
		for at := range entries {
			if entries[at].gone {
				gone++
				continue
			}
			ours, err := i.isOurs(ctx, &entries[at], want)
			if err != nil {
				return 0, err
			}
			if ours {
				found(entries[at].id)
			}
		}
		after += uint64(n)
	}
	return gone, nil
}

// isOurs says whether the message after the mark is one that this sink has written. What nobody of us has written, and
// another cluster's in a stream that is not shared, is an error.
func (i *inspector) isOurs(ctx context.Context, e *entry, want *mark) (bool, error) {
	_, notOurs := change.ParseID(e.id)
	switch {
	case notOurs != nil && i.stream.shared:
		return false, nil
	case notOurs != nil:
		return false, permanent("open stream %s: message %d on subject %q is not from kubecdc: "+
			"another writer publishes into the stream: give the exporter a stream of its own, or say that it is shared",
			i.stream.name, e.seq, e.subject)
	case i.stream.shared && want.Writer != "":
		return isMessageID(e.messageID, messageID(want.Writer, e.subject, e.id)), nil
	case i.stream.shared && e.messageID != e.id && !isMessageID(e.messageID, messageID(i.stream.place.Writer, e.subject, e.id)):
		return false, nil // not even one of an older version
	}
	if err := i.options.Judge(e.asStored(i.stream.name)); err != nil {
		return false, i.convict(ctx, e)
	}
	return coveredByAny(i.options.Subjects, e.subject), nil
}

// convict reads the whole message, which tells under which name another cluster has written it. One that is gone by
// now, such as a replaced value of a bucket, is judged by its id.
func (i *inspector) convict(ctx context.Context, e *entry) error {
	if i.stream.shared {
		return nil
	}
	stored, err := i.fetch(ctx, i.stream.name, map[string]any{"seq": e.seq})
	if err = ignoreDenied(err); err != nil {
		return err
	}
	if stored == nil {
		stored = e.asStored(i.stream.name)
	}
	return i.refuse(stored)
}
