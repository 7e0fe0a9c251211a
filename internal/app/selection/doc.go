// Package selection says which streams exist: what the configuration chooses of what an API server serves, those that
// the saved state knows and nobody serves, and what is streamed now. Its follower brings the running streams to that.
//
// Decisions:
//
//   - Which streams there are is a function of catalog and configuration (Choose); the follower brings the running
//     streams to what it says.
//   - A wildcard that stands for nothing is no error, since what it is for may be installed later. So may
//     the full name of a custom resource, unless it is required. Another name that is not served is a mistake, unless
//     the state knows its stream.
//   - Several entries of one resource are one stream, or one of each namespace: the first that takes an object counts.
//     A stream of each entry was refused: an object that changes its labels would be deleted in one and added in
//     another, with no order between the two (I3). So the last entry is what the API server selects by, and takes all
//     that others do: what none takes could never be told as deleted.
//   - Two entries that contradict each other for a resource which appears later stop nothing: the first one counts, and
//     the log says so once. Wildcards that could contradict each other are refused before anything is served, since
//     what one of them found would end the next start.
package selection
