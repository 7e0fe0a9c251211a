package destination

import "testing"

// TestI10NoTwoSinksShareATransactionalID: each would stop the other, though their topics have nothing in common. A
// cluster without a hyphen keeps the id that it had, and whoever has it is fenced.
func TestI10NoTwoSinksShareATransactionalID(t *testing.T) {
	names := []string{
		"a", "b", "a-b", "b-a", "-", "--", "a-", "-a", "-b", "a--b", "=", "=2D", "a=2Db", "a=b", "state", "=73tate", "state-a", "a-state", "", "a/b",
		"arn:aws:eks:eu-central-1:1:cluster/prod",
	}
	of := map[string][2]string{}
	for _, cluster := range names {
		of["kubecdc-state-"+cluster] = [2]string{"the log of the state", cluster}
	}
	for _, cluster := range names {
		for i := range 3 * len(names) {
			task, sinkName := i%3+1, names[i/3]
			id := transactionalID(cluster, task, sinkName)
			if other, taken := of[id]; taken {
				t.Errorf("sink %q of task %d of cluster %q has the id %s of %q", sinkName, task, cluster, id, other)
			}
			of[id] = [2]string{cluster, sinkName}
		}
	}
	if id := transactionalID("prod", 0, "eu-lake"); id != "kubecdc-prod-eu-lake" {
		t.Errorf("a cluster without a hyphen has the id %s", id)
	}
}
