// Package registry knows the schemas of a sink's records: it makes them of the API server's types, registers them in a
// schema registry with the API of Confluent's, and reads typed logs back.
//
// Decisions:
//
//   - A version has all columns of the newest registered one, and those that the API server has beside them
//     (typed.Merge). So it is compatible by construction with every version before it, in both directions: a field that
//     vanishes stays as a column that is null, and a value of a new type is in the rest. To give a changed type a new
//     column was refused: readers would have to look into two.
//   - A newer version is never waited for. An object that the known version lacks columns for is whole all the same, so
//     records go on with it when the registry is away, or refuses the newer one. Only a resource without any version
//     waits.
//   - A resource without a version is not read further for half a minute (listener.Gate). Then the sink misses it, and
//     it goes on for the other sinks. To queue its records would fill the queue that the sink's other resources need,
//     and to reject them would make a dead letter of each. Where no other sink takes the resource, it waits: nobody
//     would gain by the gap.
//   - What is registered is the memory: nothing of it is in the state. So a start without the API server's schemas
//     works, and several exporters with one subject add to each other's columns.
//   - Run asks; whoever encodes is answered at once. A registry that is slow keeps nobody but those who need an id.
//   - That the registry has an id for the very schema is confirmed every 30 seconds, and sooner after a failure. One
//     that was replaced is noticed then, and nothing goes out until the schema is registered again. What was written
//     since the last confirmation may have an id of the old registry; that is told. To wait for the registry as soon as
//     it does not answer would make each of its restarts a gap, when the API server's history ends.
//   - The name of a record has no version of the API: an upgrade of the cluster would make all older records
//     incompatible.
//   - Values are Avro alone. JSON with a JSON Schema was refused: its versions are compatible backward only, and no
//     converter of Kafka Connect reads it.
package registry
