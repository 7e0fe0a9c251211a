package e2e

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// stretch is what a gap says may be missing of a stream in one sink: what is above from, up to and with to. After it
// the sink has everything that the selector of the life selects, up to the next one. The first snapshot of a stream is
// one, too: what is before it was never promised.
type stretch struct {
	kind, namespace string // "" is all namespaces
	from, to        uint64
	life            *life
}

func (s stretch) String() string {
	return fmt.Sprintf("%s/%s %d-%d in start %d", s.kind, s.namespace, s.from, s.to, s.life.number)
}

// speaksOf says whether the stretch is of the object's stream.
func (s *stretch) speaksOf(kind, namespace string) bool {
	return s.kind == kind && (s.namespace == "" || s.namespace == namespace)
}

// hearOfStream notes a gap, or the first snapshot of a stream.
func (j *restartJudge) hearOfStream(e *event) {
	f, err := e.frame()
	if err != nil {
		j.fault("%v:\n%s", err, e)
		return
	}
	s := stretch{kind: e.kind(), namespace: e.Namespace, to: parseVersion(f.ResourceVersion), life: j.lifeOf(e)}
	switch {
	case e.op() == "gap":
		s.from = parseVersion(f.LastDelivered)
	case e.op() == "snapshot.begin" && f.Reason == "stale": // another selection, of which nothing is missing
		s.from = s.to
	case e.op() == "snapshot.begin" && !announced(f.Reason) && !j.knows(e):
	default:
		return
	}
	j.stretches = append(j.stretches, s)
}

// knows says whether the sink has heard of the stream of the begin before.
func (j *restartJudge) knows(begin *event) bool {
	return slices.ContainsFunc(j.stretches, func(s stretch) bool { return s.speaksOf(begin.kind(), begin.Namespace) })
}

// judgeMissing wants every version that was selected, and the delete with every version that was not selected any more,
// unless a gap covers it.
func (j *restartJudge) judgeMissing(s *settings) {
	for _, h := range j.histories {
		namespace := h.namespace()
		if !s.gives(j.sink, h.resource, namespace) {
			continue // who knows since when
		}
		var mine []stretch
		for _, one := range j.stretches {
			if one.speaksOf(h.resource, namespace) {
				mine = append(mine, one)
			}
		}
		for i, v := range h.versions {
			selected, covered := selectorAt(v.number, mine)
			if !covered {
				j.expected++
			}
			switch was := i > 0 && !covered && selected.Matches(h.versions[i-1].labels()); {
			case covered, j.saidByBoth(&v, h.uid, mine):
			case selected.Matches(v.labels()) && !j.told[said{h.uid, v.number, false}]:
				j.fault("version %d is missing, and no gap covers it: %s\n%s\n%s", v.number, h, mine, j.newestOf(h.uid))
			case was && !selected.Matches(v.labels()) && !j.told[said{h.uid, v.number, true}]:
				j.fault("that version %d is not selected any more was not told, and no gap covers it: %s\n%s", v.number, h, mine)
			}
		}
	}
}

// saidByBoth says whether another selection begins at the version, of which the sink was told by the one before. The
// position of that is one below the version, since several changes may share it. What is told is not told again.
func (j *restartJudge) saidByBoth(v *version, uid string, stretches []stretch) bool {
	return (j.told[said{uid, v.number, false}] || j.told[said{uid, v.number, true}]) &&
		slices.ContainsFunc(stretches, func(s stretch) bool { return s.from == s.to && s.to+1 == v.number })
}

// said is what a sink was told of an object: a version, or that it is gone with the version.
type said struct {
	uid     string
	version uint64
	gone    bool
}

// selectorAt is the selector of the stream at the version, unless it is covered by a gap, or before everything.
func selectorAt(version uint64, stretches []stretch) (selector labels.Selector, covered bool) {
	var last *stretch
	for i := range stretches {
		s := &stretches[i]
		if s.from < version && version <= s.to {
			return nil, true
		}
		if s.to < version && (last == nil || last.to <= s.to) {
			last = s
		}
	}
	if last == nil {
		return nil, true
	}
	return last.life.labels(last.kind), false
}

// labels is the selector of the kind.
func (s *settings) labels(kind string) labels.Selector {
	if kind != "configmaps" || s.selector == "" {
		return labels.Everything()
	}
	selector, err := labels.Parse(s.selector)
	if err != nil {
		panic(err)
	}
	return selector
}
