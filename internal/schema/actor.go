package schema

import (
	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
)

// told is what an actor says: who sent a request that was answered with a state of the object.
func (b book) told() definition {
	user := func(what string) definition {
		return described(b.fields("a user", definition{
			"username": name(), "uid": name(), "groups": listOf(name()),
		}, "username", "uid", "groups"), what)
	}
	return b.fields("who sent a request that was answered with a state of the object", definition{
		"certainty":    described(definition{"enum": []audit.Certainty{audit.Proven, audit.Likely, audit.Possible}}, "that the request made the state"),
		"op":           described(definition{"enum": []string{change.Added.String(), change.Updated.String(), change.Deleted.String()}}, "what the request did; a deletecollection deletes also what finalizers keep for now"),
		"verb":         described(name(), "of the request: create, update, patch, delete or deletecollection"),
		"subresource":  name(),
		"auditID":      described(name(), "of the request; its sender may choose it"),
		"user":         user("who is authenticated"),
		"impersonated": user("as whom the user acts, if it is another one"),
		"userAgent":    name(),
		"sourceIPs":    described(listOf(name()), "as the API server has them: the last one is of the connection, and what comes before it the client may have made up (X-Forwarded-For)"),
		"decision":     described(name(), "of the authorization"),
		"reason":       described(name(), "of the decision"),
		"code":         described(count(), "of the answer"),
		"requested":    timestamp(),
		"completed":    timestamp(),
		"cut":          described(listOf(name()), "fields that were left out, since they are too large"),
	}, "subresource", "impersonated", "auditID", "userAgent", "sourceIPs", "decision", "reason", "cut")
}
