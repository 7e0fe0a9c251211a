package kafka

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ACL allows a user one operation on one resource. The zero types are topics'.
type ACL struct {
	User      string               // without "User:"
	Operation kmsg.ACLOperation    // such as kmsg.ACLOperationWrite
	Type      kmsg.ACLResourceType // 0: kmsg.ACLResourceTypeTopic
	Resource  string               // its name; that of kmsg.ACLResourceTypeCluster is kafka-cluster
	Prefix    bool                 // Resource is the beginning of names
}

func (a ACL) withDefaults() ACL {
	if a.Type == 0 {
		a.Type = kmsg.ACLResourceTypeTopic
	}
	if a.Type == kmsg.ACLResourceTypeCluster {
		a.Resource = "kafka-cluster"
	}
	return a
}

func (a ACL) pattern() kmsg.ACLResourcePatternType {
	if a.Prefix {
		return kmsg.ACLResourcePatternTypePrefixed
	}
	return kmsg.ACLResourcePatternTypeLiteral
}

// AddACL allows something and returns when every broker knows it.
func (c *Cluster) AddACL(tb testing.TB, acl ACL) {
	tb.Helper()
	acl = acl.withDefaults()
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.ResourcePatternType = acl.Type, acl.Resource, acl.pattern()
	creation.Principal, creation.Host, creation.Operation = "User:"+acl.User, "*", acl.Operation
	creation.PermissionType = kmsg.ACLPermissionTypeAllow
	request := kmsg.NewPtrCreateACLsRequest()
	request.Creations = append(request.Creations, creation)
	c.await(tb, fmt.Sprintf("add ACL %+v", acl), func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return permanentUnlessRetriable(kerr.ErrorForCode(response.Results[0].ErrorCode), response.Results[0].ErrorMessage)
	})
	c.awaitACL(tb, acl, true)
}

// RemoveACL takes back what AddACL allowed and returns when every broker knows it.
func (c *Cluster) RemoveACL(tb testing.TB, acl ACL) {
	tb.Helper()
	acl = acl.withDefaults()
	principal, host := "User:"+acl.User, "*"
	filter := kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName, filter.ResourcePatternType = acl.Type, &acl.Resource, acl.pattern()
	filter.Principal, filter.Host, filter.Operation = &principal, &host, acl.Operation
	filter.PermissionType = kmsg.ACLPermissionTypeAllow
	request := kmsg.NewPtrDeleteACLsRequest()
	request.Filters = append(request.Filters, filter)
	c.await(tb, fmt.Sprintf("remove ACL %+v", acl), func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return permanentUnlessRetriable(kerr.ErrorForCode(response.Results[0].ErrorCode), response.Results[0].ErrorMessage)
	})
	c.awaitACL(tb, acl, false)
}

// awaitACL waits until every broker has an ACL, or has it not.
func (c *Cluster) awaitACL(tb testing.TB, acl ACL, want bool) {
	tb.Helper()
	principal, host := "User:"+acl.User, "*"
	request := kmsg.NewPtrDescribeACLsRequest()
	request.ResourceType, request.ResourceName, request.ResourcePatternType = acl.Type, &acl.Resource, acl.pattern()
	request.Principal, request.Host, request.Operation = &principal, &host, acl.Operation
	request.PermissionType = kmsg.ACLPermissionTypeAllow
	c.await(tb, fmt.Sprintf("wait for ACL %+v", acl), func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error {
			response, err := request.RequestWith(ctx, broker)
			if err != nil {
				return err
			}
			if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
				return err
			}
			if got := len(response.Resources) > 0; got != want {
				return fmt.Errorf("it is there: %t, want %t", got, want)
			}
			return nil
		})
	})
}

// SetSCRAMPassword changes the password of a user for both SCRAM mechanisms, or
// adds the user. PLAIN keeps those of Options.Users.
func (c *Cluster) SetSCRAMPassword(tb testing.TB, user, password string) {
	tb.Helper()
	for mechanism, sum := range map[int8]func() hash.Hash{1: sha256.New, 2: sha512.New} {
		change := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		change.Name, change.Mechanism, change.Iterations, change.Salt = user, mechanism, 4096, []byte(rand.Text())
		salted, err := pbkdf2.Key(sum, password, change.Salt, int(change.Iterations), sum().Size())
		if err != nil {
			tb.Fatalf("set password of %s: %v", user, err)
		}
		change.SaltedPassword = salted
		request := kmsg.NewPtrAlterUserSCRAMCredentialsRequest() // a user at most once
		request.Upsertions = append(request.Upsertions, change)
		c.await(tb, "set password of "+user, func(ctx context.Context) error {
			response, err := request.RequestWith(ctx, c.client)
			if err != nil {
				return err
			}
			return permanentUnlessRetriable(kerr.ErrorForCode(response.Results[0].ErrorCode), response.Results[0].ErrorMessage)
		})
	}
}

// UnsecuredToken returns a token that OAUTHBEARER takes for user until expiry: a
// JWT without a signature (RFC 7519, section 6).
func UnsecuredToken(user string, expiry time.Time) string {
	encode := func(format string, args ...any) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, args...))
	}
	return encode(`{"alg":"none"}`) + "." + encode(`{"sub":%q,"iat":%d,"exp":%d}`, user, time.Now().Unix(), expiry.Unix()) + "."
}

// TokenServer answers the client credentials grant (RFC 6749, section 4.4) with an
// UnsecuredToken for the client's id, valid for lifetime, where secrets has id and
// secret. It returns the URL of its token endpoint and ends with the test.
func TokenServer(tb testing.TB, secrets map[string]string, lifetime time.Duration) string {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, basic := r.BasicAuth()
		if !basic {
			id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		answer := map[string]any{"token_type": "Bearer", "expires_in": int(lifetime.Seconds())}
		w.Header().Set("Content-Type", "application/json")
		if want, known := secrets[id]; !known || want != secret || r.PostFormValue("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusUnauthorized)
			answer = map[string]any{"error": "invalid_client"}
		} else {
			answer["access_token"] = UnsecuredToken(id, time.Now().Add(lifetime))
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			tb.Logf("token server: %v", err)
		}
	}))
	tb.Cleanup(server.Close)
	return server.URL
}
