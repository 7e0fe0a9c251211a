package election

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// client is the leases of an API server.
type client struct {
	rest  *rest.RESTClient
	place Place
}

// longestRequest is how long a request may take of somebody who only asks.
const longestRequest = 30 * time.Second

// newClient returns one whose requests may take so long each.
func newClient(config *rest.Config, place Place, each time.Duration) (*client, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.QPS, config.Timeout = "/apis", -1, each
	config.GroupVersion = &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NextProtos = []string{"http/1.1"}
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build a client for the Lease %s: %w", place, err)
	}
	return &client{c, place}, nil
}

// at completes a request.
func (c *client) at(r *rest.Request) *rest.Request {
	return r.Namespace(c.place.Namespace).Resource("leases").MaxRetries(0)
}

func (c *client) get(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, c.at(c.rest.Get()).Name(c.place.Name).Do(ctx).Into(lease)
}

func (c *client) create(ctx context.Context, of *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, c.at(c.rest.Post()).Body(of).Do(ctx).Into(lease)
}

func (c *client) update(ctx context.Context, to *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease := new(coordinationv1.Lease)
	return lease, c.at(c.rest.Put()).Name(c.place.Name).Body(to).Do(ctx).Into(lease)
}

// list is all of the namespace that belong to several tasks.
func (c *client) list(ctx context.Context) ([]coordinationv1.Lease, error) {
	found := new(coordinationv1.LeaseList)
	err := c.at(c.rest.Get()).Param("labelSelector", role).Do(ctx).Into(found)
	return found.Items, err
}

func (c *client) remove(ctx context.Context, name string) error {
	return c.at(c.rest.Delete()).Name(name).Do(ctx).Error()
}

// CheckHolder says why another one's Lease is not to be shared, by what judge says of its mark.
func CheckHolder(ctx context.Context, config *rest.Config, place Place, judge func(theirs string) error) error {
	lease, err := find(ctx, config, place)
	if err != nil {
		return err
	}
	return judged(lease, place, judge)
}

// IsHeld asks whether anybody holds the Lease who may be alive.
func IsHeld(ctx context.Context, config *rest.Config, place Place) (bool, error) {
	lease, err := find(ctx, config, place)
	return err == nil && holderOf(lease) != "" && isFresh(lease, time.Now()), err
}

// find asks for the Lease. One that is not there is nobody's.
func find(ctx context.Context, config *rest.Config, place Place) (*coordinationv1.Lease, error) {
	c, err := newClient(config, place, longestRequest)
	if err != nil {
		return nil, err
	}
	lease, err := c.get(ctx)
	if apierrors.IsNotFound(err) {
		return new(coordinationv1.Lease), nil
	}
	return lease, err
}

// The labels and annotations of Leases that belong to several tasks.
const (
	role     = "kubecdc/lease" // a label
	ofTask   = "task"
	ofMember = "member"
	group    = "kubecdc/tasks"   // a hash of the names of all tasks: who has others is placed by itself
	without  = "kubecdc/without" // names of tasks' Leases, or everything
	all      = "*"
)

// marked is the annotation that says what the members of a Lease share.
const marked = "kubecdc/sinks"

// leases reads and writes the Lease.
type leases interface {
	get(ctx context.Context) (*coordinationv1.Lease, error)
	create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// lister is leases, of which it sees all.
type lister interface {
	leases
	list(ctx context.Context) ([]coordinationv1.Lease, error)
	remove(ctx context.Context, name string) error
}

// trouble is that the API server does not answer for a Lease.
type trouble struct {
	since time.Time // zero is that it answers
	last  error
	told  bool
}

// lasts notes an error, and says whether to tell the log: once, when nothing else has come for so long.
func (t *trouble) lasts(err error, patience time.Duration) (tell bool) {
	if t.last = err; t.since.IsZero() {
		t.since = time.Now()
	}
	tell = !t.told && time.Since(t.since) >= patience
	t.told = t.told || tell
	return tell
}

// again takes turns until ctx ends: the next one when the last one says, or when the bell rings.
func again(ctx context.Context, now sink.Bell, turn func(context.Context) (pause time.Duration)) {
	for ctx.Err() == nil && sink.Pause(ctx, turn(ctx), now) {
	}
}

// lacks are the names of tasks' Leases that an exporter cannot have, as its own Lease says.
func lacks(lease *coordinationv1.Lease) []string {
	return strings.Split(lease.Annotations[without], ",")
}

// holderOf is who holds the Lease, "" for nobody.
func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// renew makes the Lease, nil where there is none, the holder's for so long.
func (p Place) renew(lease *coordinationv1.Lease, holder string, length time.Duration) *coordinationv1.Lease {
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	}
	lease.TypeMeta = metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"}
	now, seconds := metav1.NowMicro(), int32(length/time.Second)
	if holderOf(lease) != holder {
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &holder, &now, &seconds
	return lease
}

// lengthOf is how long the Lease lasts, 0 where it does not say.
func lengthOf(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// judged refuses a Lease that somebody may hold whose mark the judge refuses: exporters of another release.
func judged(lease *coordinationv1.Lease, place Place, judge func(theirs string) error) error {
	holder := holderOf(lease)
	if holder == "" || !isFresh(lease, time.Now()) {
		return nil
	}
	if err := judge(lease.Annotations[marked]); err != nil {
		return fmt.Errorf("ha.lease: %s holds the Lease %s for other sinks: %w: give each release a Lease of its own with ha.lease, and a log of its own "+
			"with state.log.name; if it is the same release, with other sinks altogether, stop its exporters first", Host(holder), place, err)
	}
	return nil
}

// isFresh says whether the Lease's holder may be alive. Clocks of hosts differ.
func isFresh(lease *coordinationv1.Lease, now time.Time) bool {
	const skew = time.Minute
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return true
	}
	return now.Sub(lease.Spec.RenewTime.Time) < time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second+skew
}

// The annotations with which a holder that reaches no broker asks whether another member does: an id, and the same id
// with the name of the one that does. They are hints, as the Lease is.
const (
	asks    = "kubecdc/who-can-write"
	answers = "kubecdc/can-write"
)

// OtherLeadsError is the cause with which a term ends.
type OtherLeadsError struct {
	Place  Place
	Holder string
}

func (e *OtherLeadsError) Error() string {
	return fmt.Sprintf("%s leads now, as the Lease %s says", Host(e.Holder), e.Place)
}

// ErrMoved is the cause with which a term ends that another member is to have.
var ErrMoved = errors.New("the task goes to another exporter")

// missingRights is what to do about the error if only a person can mend it.
func missingRights(place Place, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return fmt.Errorf("ha.lease: make the Lease %s: %w: create the namespace, or name another one", place, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Errorf("ha.lease: use the Lease %s: %w: bind a role with the verbs get, create and update on leases of group coordination.k8s.io "+
			"in namespace %s to the exporter's user, or name another Lease", place, err, place.Namespace)
	}
	return nil
}

// Self is a member's name in the Lease: its host, for people, and what tells it from other members there.
func Self(host, member string) string { return host + "_" + member }

// Host is the host in a member's name.
func Host(self string) string {
	if at := strings.LastIndexByte(self, '_'); at > 0 {
		return self[:at]
	}
	return self
}

// ID is what tells a member from others of its host.
func ID(self string) string { return self[strings.LastIndexByte(self, '_')+1:] }

// Place is which Lease it is.
type Place struct{ Namespace, Name string }

// String is "namespace/name".
func (p Place) String() string { return p.Namespace + "/" + p.Name }

// ParsePlace is the inverse of String.
func ParsePlace(text string) Place {
	namespace, name, _ := strings.Cut(text, "/")
	return Place{namespace, name}
}

// NameOf is the name of the Lease that says that the exporter is alive.
func NameOf(self string) string { return NameFor("member-" + self) }

// maxLabel is how long a part of our names for Leases may be.
const maxLabel = 63

// NameFor is the name of the Lease of a cluster's exporters. A cluster's name that cannot be a part of it as it is gets
// a hash after it, so that no two have the same one.
func NameFor(cluster string) string {
	name := "kubecdc-" + strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(cluster)), "-")
	if name == "kubecdc-"+cluster && len(name) <= maxLabel {
		return name
	}
	hash := sha256.Sum256([]byte(cluster))
	const digits = 8
	short := strings.TrimRight(name[:min(len(name), maxLabel-digits-1)], "-")
	return fmt.Sprintf("%s-%s", short, hex.EncodeToString(hash[:digits/2]))
}
