package election

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Candidate is an exporter that is alive.
type Candidate struct {
	Name    string
	Without []string // the tasks that it cannot have now
}

// Assign says which of the candidates is to have each of the tasks, which are given with the candidate that has each
// now, "" for none. None has two more than another one, but where others cannot. Whoever has a task keeps it unless
// that is too many; what is to be given anew goes to who has fewest, and among these by rendezvous hashing. It is a
// pure function of what all see alike, and a hint: the Lease of each task says who has it.
func Assign(candidates []Candidate, tasks map[string]string) map[string]string {
	owners, held := map[string]string{}, map[string][]string{}
	for task, holder := range tasks {
		held[holder] = append(held[holder], task)
	}
	order := slices.SortedFunc(slices.Values(candidates), func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(len(held[b.Name]), len(held[a.Name])), cmp.Compare(a.Name, b.Name))
	})
	load := map[string]int{}
	for i, c := range order {
		quota := len(tasks) / len(order)
		if i < len(tasks)%len(order) {
			quota++
		}
		has := slices.DeleteFunc(held[c.Name], func(task string) bool { return slices.Contains(c.Without, task) })
		slices.SortFunc(has, func(a, b string) int { return cmp.Compare(score(c.Name, b), score(c.Name, a)) })
		for _, task := range has[:min(quota, len(has))] {
			owners[task] = c.Name
			load[c.Name]++
		}
	}
	for _, task := range slices.Sorted(maps.Keys(tasks)) {
		able := slices.DeleteFunc(slices.Clone(order), func(c Candidate) bool { return slices.Contains(c.Without, task) })
		if owners[task] != "" || len(able) == 0 {
			continue
		}
		best := slices.MinFunc(able, func(a, b Candidate) int {
			return cmp.Or(cmp.Compare(load[a.Name], load[b.Name]), cmp.Compare(score(b.Name, task), score(a.Name, task)))
		})
		owners[task] = best.Name
		load[best.Name]++
	}
	return owners
}

func score(name, task string) uint64 {
	sum := sha256.Sum256([]byte(name + "\n" + task))
	return binary.BigEndian.Uint64(sum[:])
}

// PlacementOptions are what a Placement is made of. All are needed.
type PlacementOptions struct {
	Config   *rest.Config
	Place    Place  // of the Lease that says that this exporter is alive; those of the tasks are in its namespace
	Self     string // as Options.Self of all of its Members
	Duration time.Duration
	Leaving  func() bool // it is to stop: others may have what it has
	Logger   *slog.Logger

	leases lister // for tests; nil is the API server's
}

// Placement spreads tasks over the exporters that are alive. Each of them has a Lease of its own as a sign of life, so
// that the Lease of a task is written only when it goes from one to another, and once a minute. Its methods may be
// called from any goroutine.
type Placement struct {
	options PlacementOptions
	due     sink.Bell // look now

	mu      sync.Mutex // guards the following
	members map[string]*Member
	tasks   []string // the names of the Leases of all tasks, also of those that it cannot have now
	seen    map[string]sighting
	looked  time.Time // and the API server answered
	wrote   time.Time
	said    string // the tasks that it is without, as its Lease says
	trouble trouble
}

// sighting is a Lease, and since when it was seen as it is, as far as it was looked at.
type sighting struct {
	lease *coordinationv1.Lease
	since time.Time
}

// NewPlacement returns one of no tasks, which does nothing before Run.
func NewPlacement(o PlacementOptions) (*Placement, error) {
	if o.leases == nil {
		c, err := newClient(o.Config, o.Place, ofLength(o.Duration))
		if err != nil {
			return nil, err
		}
		o.leases = c
	}
	return &Placement{options: o, due: sink.NewBell(), members: map[string]*Member{}, seen: map[string]sighting{}}, nil
}

// SetTasks says which tasks there are, by the names of their Leases.
func (p *Placement) SetTasks(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = slices.Sorted(slices.Values(names))
	p.due.Ring()
}

// Join has the Member placed, until leave. It is a Placer.
func (p *Placement) Join(m *Member) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members[m.options.Place.Name] = m
	p.due.Ring()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.members, m.options.Place.Name)
		p.due.Ring()
	}
}

// Run looks again and again until ctx ends. Then the exporter says that it is gone.
func (p *Placement) Run(ctx context.Context) {
	again(ctx, p.due, p.look)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*ofLength(p.options.Duration))
	defer cancel()
	if err := p.sign(bounded, all, time.Second); err != nil { // it stays for a while: a task's Lease may still name it
		p.options.Logger.Warn("the Lease that says that this exporter is alive could not be ended; others have its tasks when it has run out",
			"lease", p.options.Place.String(), "error", err)
	}
}

// look signs, lists all Leases, and tells the Members. It returns when to look again, later the more there is to see.
func (p *Placement) look(ctx context.Context) (pause time.Duration) {
	const pace, perLease = 500 * time.Millisecond, 2 * time.Millisecond
	unable, due := p.unable()
	err := error(nil)
	if due {
		err = p.sign(ctx, unable, p.options.Duration)
	}
	began := time.Now()
	found, listErr := p.options.leases.list(ctx)
	if listErr == nil {
		if old := p.note(found, began); len(old) > 0 { // one at a time: this exporter's own sign of life is due
			_ = p.options.leases.remove(ctx, old[0]) // it is seen again where that fails
		}
		p.tell(began)
	} else if err = listErr; ctx.Err() != nil {
		return pace
	}
	p.troubled(err)
	return min(pace+time.Duration(len(found))*perLease, p.options.Duration/looks)
}

// unable are the tasks that this exporter cannot have now, and whether others are to be told, or that it is alive.
func (p *Placement) unable() (names string, due bool) {
	leaving := p.options.Leaving()
	p.mu.Lock()
	defer p.mu.Unlock()
	if names = all; !leaving {
		able := func(task string) bool { return p.members[task] != nil && !p.members[task].rests() }
		names = strings.Join(slices.DeleteFunc(slices.Clone(p.tasks), able), ",")
	}
	return names, names != p.said || time.Since(p.wrote) >= p.options.Duration/renewals
}

// sign writes the exporter's own Lease, which lasts so long.
func (p *Placement) sign(ctx context.Context, unable string, lasts time.Duration) error {
	lease, err := p.options.leases.get(ctx)
	do := p.options.leases.update
	if apierrors.IsNotFound(err) {
		lease, do, err = nil, p.options.leases.create, nil
	}
	if err != nil {
		return err
	}
	lease = p.options.Place.renew(lease, p.options.Self, lasts)
	lease.Labels = map[string]string{role: ofMember}
	lease.Annotations = map[string]string{group: p.group(), without: unable}
	if _, err = do(ctx, lease); err == nil {
		p.mu.Lock()
		p.wrote, p.said = lease.Spec.RenewTime.Time, unable
		p.mu.Unlock()
	}
	return err
}

// group is a hash of all tasks.
func (p *Placement) group() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(p.tasks, "\n"))))[:16]
}

// forgotten is how long the Lease of an exporter stays that is dead, as one is whose pod has another name now.
const forgotten = time.Hour

// looks is into how many parts the length of a Lease is divided at least by those who watch it change.
const looks = 4

// note notes what was listed, and returns the names of Leases that nobody needs. Only this exporter's clock counts, and
// between two looks no more than a part of a Lease's length: where the API server is slow, or away, the others cannot
// say either that they are alive.
func (p *Placement) note(found []coordinationv1.Lease, now time.Time) (old []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, unseen := p.seen, max(0, now.Sub(p.looked)-p.options.Duration/looks)
	p.looked = now
	p.seen = map[string]sighting{}
	for i := range found {
		lease := &found[i]
		since := now
		if had, is := before[lease.Name]; is && reflect.DeepEqual(had.lease.Spec, lease.Spec) {
			since = had.since.Add(unseen)
		}
		p.seen[lease.Name] = sighting{lease, since}
		if lease.Labels[role] == ofMember && now.Sub(since) > forgotten {
			old = append(old, lease.Name)
		}
	}
	return old
}

// tell tells each Member whether it is to lead, and what was seen of its Lease.
func (p *Placement) tell(now time.Time) {
	mine := p.group()
	p.mu.Lock()
	defer p.mu.Unlock()
	var candidates []Candidate
	for _, s := range p.seen {
		holder := holderOf(s.lease)
		if s.lease.Labels[role] != ofMember || holder == "" || now.Sub(s.since) > lengthOf(s.lease) {
			continue
		}
		if s.lease.Annotations[group] != mine || s.lease.Annotations[without] == all {
			continue
		}
		candidates = append(candidates, Candidate{holder, lacks(s.lease)})
	}
	tasks := map[string]string{}
	for _, name := range p.tasks {
		tasks[name] = p.owner(name, now)
	}
	owners := Assign(candidates, tasks)
	for name, m := range p.members {
		seen := p.seen[name].lease
		_, signs := p.seen[NameOf(holderOf(cmp.Or(seen, new(coordinationv1.Lease))))]
		owner := owners[name]
		if !slices.Contains(p.tasks, name) { // there is no such task any more: whoever is first has it
			owner = p.options.Self
		}
		m.place(placed{owner: owner, signs: signs, free: p.owner(name, now) == "", seen: seen, at: now})
	}
}

// owner is the living exporter that has the task, "" for none. One that says that it cannot have it has it no more: it
// died, and cannot begin it again. The caller holds mu.
func (p *Placement) owner(name string, now time.Time) string {
	lease := p.seen[name].lease
	if lease == nil || holderOf(lease) == "" {
		return ""
	}
	holder := holderOf(lease)
	sign := p.seen[NameOf(holder)]
	switch {
	case sign.lease == nil && holder == p.options.Self:
		return holder // it has not been listed yet
	case sign.lease == nil || now.Sub(sign.since) > lengthOf(sign.lease):
		return ""
	case slices.Contains(lacks(sign.lease), name):
		return ""
	}
	return holder
}

// Unowned are the names of the Leases of tasks that no living exporter has, as was seen last.
func (p *Placement) Unowned() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.tasks {
		if p.owner(name, p.looked) == "" {
			names = append(names, name)
		}
	}
	return names
}

// Owner is who does a task, as the Leases say.
type Owner struct {
	Task     string    `json:"task"`
	Lease    string    `json:"lease"`
	Exporter string    `json:"exporter,omitempty"` // "" is nobody
	Since    time.Time `json:"since,omitzero"`
	Note     string    `json:"note,omitempty"` // why nobody has it, or why its holder may not do it
}

// OwnerOf looks at the task's Lease once. Whether a holder is alive is judged by its clock and this one.
func OwnerOf(ctx context.Context, config *rest.Config, task string, place Place) (Owner, error) {
	c, err := newClient(config, place, longestRequest)
	if err != nil {
		return Owner{}, err
	}
	lease, err := find(ctx, config, place)
	if err != nil {
		return Owner{}, err
	}
	signs, err := c.list(ctx)
	if err != nil {
		return Owner{}, err
	}
	holder := holderOf(lease)
	owner := Owner{Task: task, Lease: place.String(), Exporter: Host(holder)}
	if holder != "" && lease.Spec.AcquireTime != nil {
		owner.Since = lease.Spec.AcquireTime.Time
	}
	sign, living, unable := lease, 0, 0
	for i := range signs {
		one := &signs[i]
		if one.Labels[role] != ofMember || holderOf(one) == "" {
			continue
		}
		if holderOf(one) == holder {
			sign = one
		}
		if isFresh(one, time.Now()) {
			living++
			if names := lacks(one); slices.Contains(names, place.Name) || slices.Contains(names, all) {
				unable++
			}
		}
	}
	switch {
	case holder != "" && !isFresh(sign, time.Now()):
		owner.Note = fmt.Sprintf("its exporter was seen alive last at %s", sign.Spec.RenewTime.UTC().Format(time.RFC3339))
	case holder == "" && living > 0 && unable == living:
		owner.Note = fmt.Sprintf("none of %d exporters can begin it: see problem on /statusz of each", living)
	case holder == "":
		owner.Note = "no exporter has it now"
	}
	return owner, nil
}

// troubled notes whether the API server answers, and says so once.
func (p *Placement) troubled(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		if p.trouble.told {
			p.options.Logger.Info("the API server answers for the Leases again", "namespace", p.options.Place.Namespace)
		}
		p.trouble = trouble{}
		return
	}
	patience := p.options.Duration
	if rights := missingRights(p.options.Place, err); rights != nil {
		patience, err = 0, fmt.Errorf("%w; several tasks need the verbs list and delete, too", rights)
	}
	if p.trouble.lasts(err, patience) {
		p.options.Logger.Warn("the API server does not answer for the Leases; every task stays where it is meanwhile", "error", err)
	}
}
