package people

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// attacker is a ServiceAccount that may create, and nothing else, in one namespace.
type attacker struct {
	*rig
	http *http.Client
	host string
}

// attack is what the attacker makes: objects by where they are made.
type attack struct {
	name    string
	objects func() []made
	refused int // so many of them the API server does not take
}

// made is one object.
type made struct{ at, text string }

const (
	configMaps = "/api/v1/namespaces/attacked/configmaps"
	podsPath   = "/api/v1/namespaces/attacked/pods"
	rolesPath  = "/apis/rbac.authorization.k8s.io/v1/namespaces/attacked/roles"
	trapsPath  = "/apis/attack.example.com/v1/namespaces/attacked/traps"
	hiddenText = "s3cr3t-planted"
)

// attacks are on what the exporter promises its other tenants and its consumers.
func attacks() []attack {
	quoted := func(text string) string {
		b, _ := json.Marshal(text) // of a text always
		return string(b)
	}
	configMap := func(name, more string) made {
		return made{configMaps, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%s},%s}`, quoted(name), more)}
	}
	labelled := func(name, team string) made {
		return made{configMaps, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"team":%q}}}`, name, team)}
	}
	role := func(name string) made {
		return made{rolesPath, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":%s}}`, quoted(name))}
	}
	trap := func(name, metadata, more string) made {
		return made{trapsPath, fmt.Sprintf(`{"apiVersion":"attack.example.com/v1","kind":"Trap","metadata":{"name":%q%s}%s}`, name, metadata, more)}
	}
	annotated := func(name, key, text string) made {
		return trap(name, fmt.Sprintf(`,"annotations":{%q:%s}`, key, quoted(text)), "")
	}
	const frame = `{"specversion":"1.0","id":"00000000/configmaps/attacked//1.1.full/1/snapshot.end","source":"/clusters/attacked","type":"dev.kubecdc.snapshot.end","data":{"reason":"lost"}}`
	random := func(size int) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rand.IntN(36)]
		}
		return string(b)
	}
	return []attack{
		{"frames that are forged", func() []made {
			return []made{
				configMap("forged-1", `"data":{"kubecdc-op":"snapshot.end","frame":`+quoted("\n"+frame+"\n")+`}`),
				trap("forged-2", `,"annotations":{"kubecdc-id":`+quoted(frame)+`}`, `,`+frame[1:len(frame)-1]),
				trap("forged-3", "", `,"op":"d","before":null,"after":{},"source":{"db":"x"},"payload":{"op":"d"},"headers":{"kubecdc-op":"gap"},"id":"x"`),
			}
		}, 0},
		{"names that mean something elsewhere", func() (all []made) {
			for _, name := range append(hostileNames(), "-", "=2D", "a.b", "a_b", "a=5Fb", "*", ">", "$KV", "snapshot.end", " ", "web\r\nkubecdc-op: gap\r\n\r\n", "é", "e\u0301", "A", "a",
				"\u0000", "{namespace}", "${HOME}", "attacked", "web:web", strings.Repeat("n", 600), strings.Repeat("\x01", 5000), strings.Repeat("n", 200_000)) {
				all = append(all, role(name))
			}
			return all
		}, 0},
		{"numbers, and keys that come twice", func() []made {
			return []made{
				trap("number-1", "", `,"spec":{"a":1e308,"b":-0,"c":-0.0,"d":9007199254740993,"e":123456789012345678901234567890,"f":1E-400,"g":1E5,"h":0.1e1}`),
				trap("number-2", "", `,"spec":{"a":1e400}`),
				trap("twice", `,"name":"twice-2","labels":{"team":"a","team":"b"}`, `,"spec":{"x":1,"x":2},"spec":{"x":3}`),
			}
		}, 1},
		{"characters", func() []made {
			return []made{
				configMap("characters-1", `"data":{"a":"\u0000\u001f\u007f\u2028\u2029\ufeff\uffff\ud834\udd1e","b":"\ud800","c":"\udfff\ud800","d":"`+"\xff\xc0\x80"+`"}`),
				trap("characters-2", "", `,"spec":{"\u0000":"\u0000","é":1,"e\u0301":2,"\ud800":3,"":4,"`+"\xff"+`":5}`),
			}
		}, 0},
		{"depth", func() []made {
			deep := func(n int) string { return `,"spec":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
			return []made{trap("deep-1", "", deep(9_900)), trap("deep-2", "", deep(20_000)), trap("deep-3", "", `,"spec":`+strings.Repeat(`{"env":`, 4000)+"1"+strings.Repeat("}", 4000))}
		}, 1},
		{"size", func() (all []made) {
			for i := range 4 {
				all = append(all, trap(fmt.Sprint("huge-", i), "", `,"spec":{"x":"`+random(1_400_000)+`"}`))
			}
			return all
		}, 0},
		{"many at once", func() (all []made) {
			for range 200 {
				all = append(all, made{configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"storm-"}}`})
			}
			return all
		}, 0},
		{"labels that choose topics", func() (all []made) {
			for i, team := range []string{"x.y", "x_y", "", "-", "__consumer_offsets", "..", "x", "X", strings.Repeat("l", 63)} {
				all = append(all, labelled(fmt.Sprint("team-", i), team))
			}
			for i := range 15 {
				all = append(all, labelled(fmt.Sprint("more-", i), fmt.Sprint("t", i)))
			}
			return all
		}, 3},
		{"metadata that the server sets", func() []made {
			finalizers := `"a.example.com/f"` + strings.Repeat(`,"a.example.com/f"`, 500)
			return []made{
				trap("meta-1", `,"uid":"00000000-0000-0000-0000-000000000000","deletionTimestamp":"2001-01-01T00:00:00Z","creationTimestamp":"0001-01-01T00:00:00Z","generation":-7,"selfLink":"x"`, ""),
				trap("meta-2", `,"resourceVersion":"1"`, ""),
				trap("meta-3", `,"finalizers":[`+finalizers+`]`, ""),
				trap("meta-4", `,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"pin","uid":"00000000-0000-0000-0000-000000000001","blockOwnerDeletion":true,"controller":true}]`, ""),
				trap("meta-5", `,"managedFields":[{"manager":"`+strings.Repeat("}]", 60)+`","operation":"Update","apiVersion":"v1","time":"2001-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"v:\"`+hiddenText+`\"":{}}}]`, ""),
				trap("meta-6", `,"namespace":"victim"`, ""),
			}
		}, 2},
		{"what kubectl keeps", func() []made {
			const applied = "kubectl.kubernetes.io/last-applied-configuration"
			return []made{
				annotated("applied-1", applied, `{"spec":{"tokens":["`+hiddenText+`"],"env":{"DB_PASSWORD":"`+hiddenText+`"}}`),
				annotated("applied-2", applied, hiddenText),
				annotated("applied-3", applied, strings.Repeat(`{"a":`, 30_000)),
				annotated("applied-4", applied, `{"metadata":{"annotations":{"`+applied+`":"{\"spec\":{\"tokens\":\"`+hiddenText+`\"}}"}}}`),
			}
		}, 0},
		{"secrets in names of fields", func() []made {
			return []made{
				trap("tokens", "", `,"spec":{"tokens":["`+hiddenText+`","v:\"`+hiddenText+`\""],"env":{"db_password":"`+hiddenText+`","X":{"env":[{"value":"`+hiddenText+`","name":"A_PASSWORD"}]}}}`),
				{podsPath, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"variables"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"a/PASSWORD","value":"` + hiddenText + `"}]}]}}`},
			}
		}, 0},
		{"the ends of what it is in", func() (all []made) {
			for i, text := range []string{`{"a}]}},`, `}]}}`, `"}],"spec":{`, `{{{{`, "\\\"}]}", `a}]}},{"metadata":{"name":"pin"}}`, `]]>`, `%s%n`, `\u0022}`} {
				all = append(all, trap(fmt.Sprint("end-", i), "", fmt.Sprintf(`,%s:%s,"metadata ":{%s:1}`, quoted(text), quoted(text), quoted(text))))
			}
			return all
		}, 0},
		{"who it says it is", func() (all []made) {
			for i, manager := range []string{"}]", "a\u202eb", "kubecdc-op: gap", strings.Repeat("é", 60), `"}],"time":"`} {
				object := trap(fmt.Sprint("manager-", i), "", "")
				object.at += "?fieldManager=" + url.QueryEscape(manager)
				all = append(all, object)
			}
			return all
		}, 1},
		{"more annotations than fit", func() []made {
			var all []string
			for i := range 1000 {
				all = append(all, fmt.Sprintf(`"a.example.com/%d":%q`, i, strings.Repeat("x", 240)))
			}
			return []made{trap("annotations", `,"annotations":{`+strings.Join(all, ",")+`}`, ""), trap("labels", `,"labels":{`+strings.Join(all, ",")+`}`, "")}
		}, 1},
		{"one name for all", func() []made {
			return []made{configMap("pin", `"data":{}`), role("pin"), trap("pin", "", ""),
				{podsPath, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pin"},"spec":{"containers":[{"name":"c","image":"i"}]}}`}}
		}, 0},
	}
}

// TestI4ATenantWhoMayCreateForgesAndStopsNothing: a ServiceAccount has exactly the right to create pods, config maps,
// roles and custom resources in one namespace, and attacks from there. Each sink ends with what the cluster has, but
// for what is too large for it, of which a letter is kept; no value that is redacted is in any of them; and a
// neighbour's changes arrive.
func TestI4ATenantWhoMayCreateForgesAndStopsNothing(t *testing.T) {
	r := newRig(t, "attacked")
	r.startNATS()
	r.kafka = brokers.Get(t)
	a := r.attacker()
	var resources []string
	for _, resource := range []string{"configmaps}", "pods, redactEnv: ['*PASSWORD*']}", "roles.rbac.authorization.k8s.io}",
		"traps.attack.example.com, redact: [.spec.tokens], redactEnv: ['*PASSWORD*'], keep: [managedFields, lastApplied], actor: true, before: true, changes: true}"} {
		resources = append(resources, "  - {namespaces: [attacked, victim], resource: "+resource)
	}
	r.configure("config.yaml", strings.Join(resources, "\n"), fmt.Sprintf(`  - {name: file, file: {path: %q}}
  - {name: deb, format: debezium, file: {path: %q}}
  - {name: table, format: cloudevents-binary, kafka: {brokers: [%[3]q], topic: "table.{cluster}.{resource}", partitions: 2, cleanup: compact, headers: {x-name: "{name}"}}}
  - {name: teams, format: object, kafka: {brokers: [%[3]q], topic: "team.{resource}.{label:team}", labelTopics: 12, headers: {x-team: "{label:team}"}}}
  - {name: bus, format: cloudevents-binary, nats: {url: %[4]q, stream: BUS, headers: {X-Name: "{name}"}}}
  - {name: bucket, format: object, nats: {url: %[4]q, kv: NOW}}`, r.path("out.ndjson"), r.path("deb.ndjson"), r.kafka.Brokers()[0], r.nats))
	r.start()
	stop := r.neighbour()
	for i, attack := range attacks() {
		if i%5 == 4 { // in the middle of what the attack before has made
			r.exporter.Kill()
			r.start()
		}
		a.attack(&attack)
	}
	stop()
	a.sweep()
	eventually(t, "what the sinks have is equal to the cluster, but for what is too large", func() bool {
		return a.verified() == ""
	})
	a.unforged()
	a.readable()
	r.stop()
	if found := a.verified(); found != "" {
		t.Error(found)
	}
}

// attacker makes the two namespaces, the custom resource, and the account with its rights.
func (r *rig) attacker() *attacker {
	r.t.Helper()
	r.post("/api/v1/namespaces", []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"victim"}}`))
	r.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"traps.attack.example.com"},"spec":{"group":"attack.example.com","scope":"Namespaced","names":{"plural":"traps","kind":"Trap"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
		"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
		"properties":{"tokens":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}}}}}]}}`))
	eventually(r.t, "traps are served", func() bool {
		return r.client.CoreV1().RESTClient().Get().AbsPath(trapsPath).Do(r.t.Context()).Error() == nil
	})
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"", rbacv1.GroupName, "attack.example.com"}, Resources: []string{"pods", "configmaps", "roles", "traps"}, Verbs: []string{"create"}}}
	creator := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "creator"}, Rules: rules}
	binding := &rbacv1.RoleBinding{ObjectMeta: creator.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "creator"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "mallory", Namespace: r.namespace}}}
	_, err := r.client.RbacV1().Roles(r.namespace).Create(r.t.Context(), creator, metav1.CreateOptions{})
	if err == nil {
		_, err = r.client.RbacV1().RoleBindings(r.namespace).Create(r.t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	config := rest.CopyConfig(shared.Get(r.t).RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + r.namespace + ":mallory", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		r.t.Fatal(err)
	}
	a := &attacker{r, client, config.Host}
	eventually(r.t, "the account may create", func() bool {
		status, _ := a.do(http.MethodPost, configMaps+"?dryRun=All", `{"metadata":{"name":"x"}}`)
		return status == http.StatusCreated
	})
	for _, path := range []string{configMaps, "/api/v1/namespaces/victim/configmaps"} {
		if status, _ := a.do(http.MethodGet, path, ""); status != http.StatusForbidden {
			r.t.Fatalf("the account gets %s: status %d", path, status)
		}
	}
	return a
}

// do asks the API server as the account.
func (a *attacker) do(method, path, body string) (status int, said string) {
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.host+path, strings.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := a.http.Do(request)
	if err != nil {
		a.t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		a.t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// attack makes the objects, eight at a time.
func (a *attacker) attack(of *attack) {
	a.t.Helper()
	objects := of.objects()
	statuses, said := make([]int, len(objects)), make([]string, len(objects))
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, object := range objects {
		slots <- struct{}{}
		group.Go(func() {
			statuses[i], said[i] = a.do(http.MethodPost, object.at, object.text)
			<-slots
		})
	}
	group.Wait()
	refused := 0
	for i, status := range statuses {
		if status != http.StatusCreated {
			refused++
			a.t.Logf("%s: %.120q: status %d: %.300s", of.name, objects[i].text, status, said[i])
		}
	}
	if refused != of.refused {
		a.t.Errorf("%s: the API server refused %d of %d, want %d", of.name, refused, len(objects), of.refused)
	}
}

// neighbour changes a config map in another namespace until it is stopped, and wants each change to arrive soon.
func (r *rig) neighbour() (stop func()) {
	ctx, end := context.WithCancel(r.t.Context())
	var group sync.WaitGroup
	maps := r.client.CoreV1().ConfigMaps("victim")
	group.Go(func() {
		v := *r
		v.namespace = "victim"
		for i := 0; ctx.Err() == nil; i++ {
			v.put("pin", fmt.Sprint("value-", i))
			now, err := maps.Get(r.t.Context(), "pin", metav1.GetOptions{})
			if err != nil {
				r.t.Error(err)
				return
			}
			eventually(r.t, "the neighbour's change is in the file", func() bool {
				text, err := os.ReadFile(r.path("out.ndjson"))
				return err == nil && strings.Contains(string(text), `/victim/pin/`+string(now.UID)+`/`+now.ResourceVersion+`/`)
			})
		}
	})
	return func() {
		end()
		group.Wait()
	}
}

// verified says what verify finds that is not too large for its sink.
func (a *attacker) verified() string {
	a.t.Helper()
	o := a.run("verify", "-f", a.path("config.yaml"), "-o", "json", "--timeout", "10s")
	var found []string
	for name, v := range o.verdicts(a.t) {
		for _, s := range v.Streams {
			for _, d := range s.Differences {
				if d.Kind == "missing" && a.lettered(name, d.Name) {
					continue
				}
				found = append(found, fmt.Sprintf("sink %s: %s %s %.100q", name, d.Kind, s.Stream, d.Name))
			}
		}
	}
	if o.Code == 2 {
		found = append(found, o.Stderr)
	}
	slices.Sort(found)
	return strings.Join(found, "\n")
}

// lettered says whether a dead letter of the object is kept for the sink.
func (a *attacker) lettered(sink, name string) bool {
	o := a.run("deadletter", "list", "-o", "json", "--sink", sink, "--state-dir", a.path("state"))
	for line := range strings.Lines(o.Stdout) {
		var letter struct{ Sink, Name string }
		if json.Unmarshal([]byte(line), &letter) == nil && letter.Sink == sink && letter.Name == name {
			return true
		}
	}
	return false
}

// sweep deletes every other object of the attacker, as its owner.
func (a *attacker) sweep() {
	a.t.Helper()
	api := a.client.CoreV1().RESTClient()
	for _, at := range []string{configMaps, rolesPath, trapsPath, podsPath} {
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(a.get(at), &list); err != nil {
			a.t.Fatal(err)
		}
		for i, item := range list.Items {
			if name := item.Metadata.Name; i%2 == 0 && name != "creator" {
				if err := api.Delete().AbsPath(at).Name(name).Body(&metav1.DeleteOptions{GracePeriodSeconds: new(int64)}).Do(a.t.Context()).Error(); err != nil {
					a.t.Errorf("delete %.100q: %v", name, err)
				}
			}
		}
	}
}

// unforged looks at each sink without the exporter's code: each message is of one change, frames are the exporter's, no
// value that is redacted is there, and nothing of the log acts on a terminal.
func (a *attacker) unforged() {
	a.t.Helper()
	const streams = 8
	for _, name := range []string{"out.ndjson", "deb.ndjson"} {
		text, err := os.ReadFile(a.path(name))
		if err != nil {
			a.t.Fatal(err)
		}
		ids, ends := map[string]bool{}, 0
		for line := range strings.Lines(string(text)) {
			var e struct{ ID string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				a.t.Errorf("%s has a line that is no JSON: %v: %.300s", name, err, line)
				continue
			}
			if ids[e.ID] {
				a.t.Errorf("%s has %.300q twice", name, e.ID)
			}
			// cluster, resource, namespace, name, uid, version, operation
			if parts := strings.Split(e.ID, "/"); len(parts) > 6 && parts[6] == "snapshot.end" {
				ends++
			}
			ids[e.ID] = true
		}
		if ends != streams {
			a.t.Errorf("%s has the ends of %d snapshots, want %d", name, ends, streams)
		}
		a.hides(name, string(text))
	}
	var headers []map[string][]string
	told := map[string]bool{}
	for _, topic := range a.topics() {
		for _, record := range a.kafka.ConsumeFast(a.t, topic, kafka.JudgeOptions{ReadCommitted: true}) {
			a.hides("topic "+topic, string(record.Value))
			all := map[string][]string{}
			for _, h := range record.Headers {
				all[h.Key] = append(all[h.Key], string(h.Value))
			}
			headers = append(headers, all)
			what := fmt.Sprint(strings.HasPrefix(topic, "table"), record.Value == nil, all["kubecdc-id"])
			if told[what] {
				a.t.Errorf("topic %s has %.300s twice", topic, what)
			}
			told[what] = true
		}
	}
	for _, stream := range []string{"BUS", "KV_NOW"} {
		for _, m := range messagesOf(a.t, a.nats, stream) {
			a.hides("stream "+stream, string(m.Data()))
			headers = append(headers, m.Headers())
			what := stream + m.Headers().Get("kubecdc-id")
			if told[what] {
				a.t.Errorf("stream %s has %.300s twice", stream, what)
			}
			told[what] = true
		}
	}
	for _, all := range headers {
		a.hides("a header", fmt.Sprint(all))
		id, op := all["kubecdc-id"], all["kubecdc-op"]
		if len(id) != 1 || len(op) != 1 || strings.Split(id[0]+"//////", "/")[6] != op[0] || len(all["x-name"]) > 1 || len(all["X-Name"]) > 1 || len(all["x-team"]) > 1 {
			a.t.Errorf("a message has the headers %.1500q", all)
		}
	}
	a.t.Logf("%d messages of brokers", len(headers))
	log := a.exporter.Said()
	if found := actsOn(log); found != "" {
		a.t.Errorf("the log has %s", found)
	}
	for line := range strings.Lines(log) {
		if len(line) > 20_000 {
			a.t.Errorf("the log has a line of %d bytes: %.200s", len(line), line)
		}
	}
}

// readable looks with the exporter's commands and pages: none is at the mercy of what objects say.
func (a *attacker) readable() {
	a.t.Helper()
	file := []string{"-f", a.path("config.yaml"), "--kubeconfig", a.path("kubeconfig")}
	for sink, how := range map[string]string{"file": "--diff", "table": "--diff", "bus": "--output=json", "bucket": "--diff"} {
		args := append([]string{"tail", "--sink", sink, "--since", "start", "--follow=false", how}, file...)
		if o := a.run(args...); o.Code != 0 || strings.Count(o.Stdout, "\n") < 100 || actsOn(o.Stdout+o.Stderr) != "" {
			a.t.Errorf("%q ends with code %d, %d bytes, %s: %.500s", args, o.Code, len(o.Stdout), actsOn(o.Stdout+o.Stderr), o.Stderr)
		}
	}
	for path, most := range map[string]int{"/statusz": 200_000, "/metrics": 200_000, "/readyz": 10} {
		answer, err := http.Get("http://" + a.exporter.Address() + path)
		if err != nil {
			a.t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK || len(text) > most {
			a.t.Errorf("%s: %s, %v, %d bytes", path, answer.Status, err, len(text))
		}
	}
}

// hides wants no redacted value in what a sink has.
func (a *attacker) hides(where, text string) {
	a.t.Helper()
	if at := strings.Index(text, hiddenText); at >= 0 {
		a.t.Errorf("%s has a value that is redacted: %.400s", where, text[max(0, at-200):])
	}
}

// topics are those of the test.
func (a *attacker) topics() []string {
	a.t.Helper()
	names, err := a.kafka.Topics(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, "table.attacked.") && !strings.HasPrefix(name, "team.")
	})
}
