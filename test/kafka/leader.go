package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaderOf returns the broker that leads a partition. While there is none, it waits.
func (c *Cluster) LeaderOf(ctx context.Context, topic string, partition int) (id int, err error) {
	err = until(ctx, func(ctx context.Context) error {
		p, err := c.partition(ctx, topic, partition)
		if err == nil && p.Leader < 0 {
			err = fmt.Errorf("there is none; replicas %v, in sync %v", p.Replicas, p.ISR)
		}
		id = int(p.Leader)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find leader of %s/%d: %w", topic, partition, err)
	}
	return id, nil
}

// partition returns what the controller's latest metadata says of one partition.
func (c *Cluster) partition(ctx context.Context, topic string, partition int) (kmsg.MetadataResponseTopicPartition, error) {
	about, err := lookUp(ctx, c.client, topic)
	if err != nil {
		return kmsg.MetadataResponseTopicPartition{}, err
	}
	i := slices.IndexFunc(about.Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return int(p.Partition) == partition })
	if i < 0 {
		return kmsg.MetadataResponseTopicPartition{}, fmt.Errorf("metadata has no partition %d", partition)
	}
	return about.Partitions[i], nil
}

// MoveLeader makes broker to, which must be an in-sync replica, the leader of a
// partition, and returns when it is. It asks for the election of a preferred
// leader, which needs no fault.
func (c *Cluster) MoveLeader(ctx context.Context, topic string, partition, to int) error {
	err := until(ctx, func(ctx context.Context) error {
		p, err := c.partition(ctx, topic, partition)
		if err != nil || int(p.Leader) == to {
			return err
		}
		if !slices.Contains(p.Replicas, int32(to)) {
			return permanent{fmt.Errorf("broker %d is none of the replicas %v", to, p.Replicas)}
		}
		if err := c.prefer(ctx, topic, p, int32(to)); err != nil {
			return err
		}
		if err := c.elect(ctx, topic, partition); err != nil {
			return err
		}
		return fmt.Errorf("broker %d leads still", p.Leader)
	})
	if err != nil {
		return fmt.Errorf("move leader of %s/%d to %d: %w", topic, partition, to, err)
	}
	return nil
}

// prefer puts a replica first, which moves no data.
func (c *Cluster) prefer(ctx context.Context, topic string, p kmsg.MetadataResponseTopicPartition, first int32) error {
	if p.Replicas[0] == first {
		return nil
	}
	var request kadm.AlterPartitionAssignmentsReq
	others := slices.DeleteFunc(slices.Clone(p.Replicas), func(id int32) bool { return id == first })
	request.Assign(topic, p.Partition, append([]int32{first}, others...))
	assigned, err := c.admin.AlterPartitionAssignments(ctx, request)
	return cmp.Or(err, assigned.Error())
}

func (c *Cluster) elect(ctx context.Context, topic string, partition int) error {
	var of kadm.TopicsSet
	of.Add(topic, int32(partition))
	elected, err := c.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, of)
	if refused := elected[topic][int32(partition)].Err; refused != kerr.ElectionNotNeeded {
		err = cmp.Or(err, refused)
	}
	return err
}

// AwaitISR waits until every broker says that every replica of every partition of a topic is in sync: one that was
// paused knows for a while only what was so before. All brokers must run.
func (c *Cluster) AwaitISR(ctx context.Context, topic string) error {
	err := until(ctx, func(ctx context.Context) error {
		return c.everyBroker(ctx, func(broker kmsg.Requestor) error {
			about, err := describe(ctx, broker, topic)
			if err != nil {
				return err
			}
			for _, p := range about.Partitions {
				if len(p.ISR) < len(p.Replicas) {
					return fmt.Errorf("partition %d: in sync %v of %v", p.Partition, p.ISR, p.Replicas)
				}
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("wait for replicas of %s: %w", topic, err)
	}
	return nil
}

// ElectUnclean makes a partition lose what it had acknowledged: it kills all
// replicas but the leader, calls write, kills the leader, starts one of the others,
// which leads without having what was written, and then the old leader, which
// forgets it. The topic needs two replicas of three brokers and min.insync.replicas=1.
// Unclean elections are allowed for this one alone: on a busy machine brokers seem to be
// dead now and then, and would lose more.
func (c *Cluster) ElectUnclean(ctx context.Context, topic string, partition int, write func() error) error {
	leader, err := c.LeaderOf(ctx, topic, partition)
	if err != nil {
		return err
	}
	p, err := c.partition(ctx, topic, partition)
	if err != nil {
		return err
	}
	if len(c.nodes) != 3 || len(p.Replicas) != 2 {
		return fmt.Errorf("unclean election of %s/%d: it has %d replicas of %d brokers, want 2 of 3", topic, partition, len(p.Replicas), len(c.nodes))
	}
	follower := int(p.Replicas[0] + p.Replicas[1] - int32(leader))
	if err := c.Kill(follower); err != nil {
		return err
	}
	alone := func(p kmsg.MetadataResponseTopicPartition) bool { return len(p.ISR) == 1 }
	if err := c.awaitPartition(ctx, topic, partition, alone); err != nil {
		return err
	}
	if err := write(); err != nil {
		return fmt.Errorf("unclean election of %s/%d: write: %w", topic, partition, err)
	}
	if err := c.alterTopicConfig(ctx, topic, map[string]string{uncleanElection: "true"}); err != nil {
		return err
	}
	if err := c.Kill(leader); err != nil {
		return err
	}
	if err := c.StartNodes(ctx, follower); err != nil {
		return err
	}
	leads := func(p kmsg.MetadataResponseTopicPartition) bool { return int(p.Leader) == follower }
	if err := c.awaitPartition(ctx, topic, partition, leads); err != nil {
		return err
	}
	if err := c.alterTopicConfig(ctx, topic, map[string]string{uncleanElection: "false"}); err != nil {
		return err
	}
	return c.StartNodes(ctx, leader)
}

const uncleanElection = "unclean.leader.election.enable"

func (c *Cluster) awaitPartition(ctx context.Context, topic string, partition int, holds func(kmsg.MetadataResponseTopicPartition) bool) error {
	err := until(ctx, func(ctx context.Context) error {
		p, err := c.partition(ctx, topic, partition)
		if err == nil && !holds(p) {
			err = fmt.Errorf("leader %d, in sync %v of %v", p.Leader, p.ISR, p.Replicas)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for %s/%d: %w", topic, partition, err)
	}
	return nil
}
