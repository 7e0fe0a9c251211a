package people

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hostileNames are of RBAC objects, which may be called almost anything: escape sequences of 7 and 8 bits, DEL, what
// turns the direction of writing, and a line and a column that are not the program's.
func hostileNames() []string {
	return []string{"a\x1b]0;owned\x07", "b\u202egnp.exe", "c\u009b31mred", "d\x7f\x7f", "e\nforged  line", "f\tg\rh", "i\u2066\u200bj"}
}

// TestNoNameActsOnATerminal: whoever may create an object may not write to the terminal of who looks for it, whatever
// the command.
func TestNoNameActsOnATerminal(t *testing.T) {
	r := newRig(t, "hostile")
	r.configure("config.yaml", r.resource("roles.rbac.authorization.k8s.io", `, filter: "!has(object.metadata.labels) || int(object.metadata.labels.x) > 0", filterFailure: deadletter`)+
		"\n"+r.resource("rolebindings.rbac.authorization.k8s.io", ""), fmt.Sprintf("  - {name: lake, file: {path: %q}}", r.path("out.ndjson")))
	r.hostile("v1")
	r.start()
	eventually(t, "the objects are in the sink", func() bool {
		text, err := os.ReadFile(r.path("out.ndjson"))
		return err == nil && strings.Count(string(text), "dev.kubecdc.replaced") >= 2*len(hostileNames()) && strings.Count(string(text), "dev.kubecdc.gap") >= len(hostileNames())
	})
	r.hostile("v2")
	state := []string{"--state-dir", r.path("state")}
	eventually(t, "the objects are in the inventory, which is saved behind the sink", func() bool {
		return strings.Count(r.run(append([]string{"inventory", "list"}, state...)...).Stdout, "\n") > 2*len(hostileNames())
	})
	file := []string{"-f", r.path("config.yaml"), "--kubeconfig", r.path("kubeconfig")}
	tail := append([]string{"tail", "--sink", "lake", "--since", "start", "--follow=false"}, file...)
	r.wantPlain(len(hostileNames()),
		append([]string{"tail", "--since", "start", "--follow=false"}, state...), append([]string{"tail", "--since", "start", "--follow=false", "-o", "json"}, state...),
		append(tail, "--diff"), append(tail, "-o", "json", "--diff"),
		append([]string{"inventory", "list"}, state...), append([]string{"deadletter", "list", "-o", "json"}, state...), append([]string{"deadletter", "list"}, state...),
		append([]string{"deadletter", "show"}, state...), append([]string{"deadletter", "replay"}, state...))
	r.wantPlain(0, append([]string{"checkpoint", "show"}, state...), append([]string{"snapshot", "--wait"}, state...), append([]string{"check"}, file...))
	r.stop()
	if err := os.Truncate(r.path("out.ndjson"), 0); err != nil {
		t.Fatal(err)
	}
	verify := append([]string{"verify", "--timeout", "1s"}, file...)
	r.wantPlain(len(hostileNames()), verify, append([]string{"inventory", "list"}, state...), append([]string{"inventory", "list", "-o", "json"}, state...))
	r.wantPlain(1, append(verify, "-o", "json"))
	for _, name := range hostileNames() {
		r.wantPlain(1, append([]string{"inventory", "get", "--resources", "rolebindings", name}, state...))
		r.wantPlain(0, append([]string{"inventory", "get", "--resources", name, name}, state...), append([]string{"deadletter", "show", "--id", name}, state...), []string{name})
	}
	if found := actsOn(r.exporter.Said()); found != "" {
		t.Errorf("the exporter's log has %s", found)
	}
}

// hostile makes or changes the objects: of each name a binding, a role, and a role whose filter fails.
func (r *rig) hostile(note string) {
	r.t.Helper()
	api := r.client.RbacV1()
	for _, name := range hostileNames() {
		meta := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Name: name, Namespace: r.namespace, Annotations: map[string]string{"note": note + name}}
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: meta(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
		failing := &rbacv1.Role{ObjectMeta: meta("x" + name)}
		failing.Labels = map[string]string{"x": "none"}
		var errs []error
		if note == "v1" {
			_, first := api.RoleBindings(r.namespace).Create(r.t.Context(), binding, metav1.CreateOptions{})
			_, second := api.Roles(r.namespace).Create(r.t.Context(), &rbacv1.Role{ObjectMeta: meta(name)}, metav1.CreateOptions{})
			_, third := api.Roles(r.namespace).Create(r.t.Context(), failing, metav1.CreateOptions{})
			errs = append(errs, first, second, third)
		} else {
			_, err := api.RoleBindings(r.namespace).Update(r.t.Context(), binding, metav1.UpdateOptions{})
			errs = append(errs, err)
		}
		for _, err := range errs {
			if err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// wantPlain runs the commands, and wants that many lines at least, and nothing that a terminal would act on.
func (r *rig) wantPlain(lines int, commands ...[]string) {
	r.t.Helper()
	for _, args := range commands {
		o := r.run(args...)
		if n := strings.Count(o.Stdout, "\n"); n < lines {
			r.t.Errorf("%q says %d lines, want %d: %s%s", args, n, lines, o.Stdout, o.Stderr)
		}
		for where, text := range map[string]string{"output": o.Stdout, "error": o.Stderr} {
			if found := actsOn(text); found != "" || strings.Contains(text, "\nforged") {
				r.t.Errorf("the %s of %q has %s: %.2000q", where, args, found, text)
			}
		}
	}
}

// actsOn finds a byte or character that a terminal would act on.
func actsOn(text string) string {
	for _, c := range text {
		if unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Cf, c) {
			return fmt.Sprintf("%q", c)
		}
	}
	return ""
}
