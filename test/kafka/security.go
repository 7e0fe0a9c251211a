package kafka

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
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

// filter finds the ACL.
func (a ACL) filter() *kmsg.DescribeACLsRequest {
	request := kmsg.NewPtrDescribeACLsRequest()
	principal, host := "User:"+a.User, "*"
	request.Principal, request.Host, request.Operation, request.PermissionType = &principal, &host, a.Operation, kmsg.ACLPermissionTypeAllow
	request.ResourceType, request.ResourceName, request.ResourcePatternType = cmp.Or(a.Type, kmsg.ACLResourceTypeTopic), &a.Resource, kmsg.ACLResourcePatternTypeLiteral
	if a.Type == kmsg.ACLResourceTypeCluster {
		*request.ResourceName = "kafka-cluster"
	}
	if a.Prefix {
		request.ResourcePatternType = kmsg.ACLResourcePatternTypePrefixed
	}
	return request
}

// builder makes or removes it.
func (a ACL) builder() *kadm.ACLBuilder {
	of := a.filter()
	b := kadm.NewACLs().Allow(*of.Principal).AllowHosts(*of.Host).Operations(of.Operation).ResourcePatternType(of.ResourcePatternType)
	switch of.ResourceType {
	case kmsg.ACLResourceTypeCluster:
		return b.Clusters()
	case kmsg.ACLResourceTypeGroup:
		return b.Groups(a.Resource)
	case kmsg.ACLResourceTypeTransactionalId:
		return b.TransactionalIDs(a.Resource)
	}
	return b.Topics(a.Resource)
}

// AddACL allows something and returns when every broker knows it.
func (c *Cluster) AddACL(tb testing.TB, acl ACL) {
	tb.Helper()
	c.await(tb, fmt.Sprintf("add ACL %+v", acl), func(ctx context.Context) error {
		made, err := c.admin.CreateACLs(ctx, acl.builder())
		for _, r := range made {
			err = cmp.Or(err, permanentUnlessRetriable(r.Err, r.ErrMessage))
		}
		return err
	})
	c.awaitACL(tb, acl, true)
}

// RemoveACL takes back what AddACL allowed and returns when every broker knows it.
func (c *Cluster) RemoveACL(tb testing.TB, acl ACL) {
	tb.Helper()
	c.await(tb, fmt.Sprintf("remove ACL %+v", acl), func(ctx context.Context) error {
		removed, err := c.admin.DeleteACLs(ctx, acl.builder())
		for _, r := range removed {
			err = cmp.Or(err, permanentUnlessRetriable(r.Err, r.ErrMessage))
		}
		return err
	})
	c.awaitACL(tb, acl, false)
}

// awaitACL waits until every broker has an ACL, or has it not.
func (c *Cluster) awaitACL(tb testing.TB, acl ACL, want bool) {
	tb.Helper()
	c.awaitEverywhere(tb, fmt.Sprintf("wait for ACL %+v", acl), func(ctx context.Context, broker kmsg.Requestor) error {
		response, err := acl.filter().RequestWith(ctx, broker)
		if err != nil {
			return err
		}
		if got := len(response.Resources) > 0; got != want {
			err = fmt.Errorf("it is there: %t, want %t", got, want)
		}
		return cmp.Or(kerr.ErrorForCode(response.ErrorCode), err)
	})
}
