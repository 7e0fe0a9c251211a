package encode

import "github.com/kubecdc/kubecdc/internal/change"

// appendKey appends the key of the record's message: "namespace/name", or "name" where the object is cluster-scoped.
// All messages of an object have one key, so they share a partition, in which their order is kept.
//
// A record that speaks of its stream has a key that no object can have, "/snapshot.begin" or "shop//gap": a compacted
// topic takes no message without one, and keeps the last of each. So has the gap of an object,
// "/gap/configmaps/shop/web".
func appendKey(dst []byte, rec *change.Record) []byte {
	if rec.Op == change.Actor {
		return appendActorKey(dst, rec)
	}
	if rec.Key.Name != "" {
		return appendJoined(dst, rec.Key.Namespace, rec.Key.Name)
	}
	dst = append(dst, rec.Stream.Namespace...)
	if rec.Stream.Namespace != "" {
		dst = append(dst, '/')
	}
	return append(append(dst, '/'), rec.Op.String()...)
}

func appendJoined(dst []byte, namespace, name string) []byte {
	if namespace != "" {
		dst = append(append(dst, namespace...), '/')
	}
	return append(dst, name...)
}

// gapOf stands for the gap of an object, with a name that no object can have.
func gapOf(rec *change.Record) *change.Record {
	name := rec.Stream.Resource.AppendString([]byte("/gap/"))
	name = appendJoined(append(name, '/'), rec.Key.Namespace, rec.Key.Name)
	return &change.Record{Stream: rec.Stream, Op: rec.Op, Key: change.Key{Name: string(name)}}
}

// appendActorKey appends the key of the actor's message. Each has its own: a compacted topic keeps them all.
func appendActorKey(dst []byte, rec *change.Record) []byte {
	return appendJoined(append(append(dst, rec.UID...), '/'), rec.Key.Namespace, rec.Key.Name)
}
