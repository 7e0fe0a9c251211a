package e2e

import (
	"math/rand/v2"
	"testing"
)

// TestI3I5ExactlyOnceInOrderWhileBothEndsAndTheNetworkFail resets the connection to the NATS server again and
// again, and kills server and exporter in turn. E2E_CHANGES is how many events there are at least.
func TestI3I5ExactlyOnceInOrderWhileBothEndsAndTheNetworkFail(t *testing.T) {
	r, network := newProxiedRig(t, world{})
	r.summon()
	r.writer.populate(t)
	r.writer.start(t)
	mend := network.resetEvery(betweenCuts(t))
	random := rand.New(rand.NewPCG(seed(t), 5000))
	changes, times := number(t, "E2E_CHANGES", 400), kills(t, 4)
	for i := range times {
		r.killAtRandom(1)
		r.file.awaitMore(t, r.exporter, max(len(r.file.all(t))+1+random.IntN(50), changes*i/times))
		r.broker.kill()
		r.broker.start()
		if i%2 == 0 {
			r.awaitWhatTheFileHas()
		}
		r.exporter.process.Kill()
	}
	r.exporter.start(t)
	r.file.awaitMore(t, r.exporter, changes)
	r.writer.stop(t)
	r.await(r.writer.finish(t)...) // while connections are still reset
	mend()
	r.exporter.stop(t)
	r.judge(false)
	t.Logf("%d connections were reset, the NATS server was killed %d times and the exporter %d times", network.resetCount(), times, 2*times)
}
