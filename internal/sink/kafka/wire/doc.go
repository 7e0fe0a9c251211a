// Package wire speaks Kafka's protocol over kafka-go's transport: connections, security, requests and errors. It knows
// neither records nor what a sink promises. Every request is one attempt: what to do after an error is the caller's
// decision, and Classify tells what the error allows. Two layers: link has the connections and sends to a given broker,
// and Cluster knows which broker that is, and has the requests.
//
// Decisions:
//
//   - kafka-go's transport with requests of our own. Its Writer has no producer id and gives up after ten attempts;
//     its connections, TLS and logins are good. protocol.RawExchanger opens them to any request. Requests are
//     encoded and read by franz-go's kmsg, which has all of Kafka's, and copies batches once.
//   - Leaders are asked for here. The transport renews its cache by a timer only; here a refusal or a dead connection
//     makes the next attempt ask. The transport is told of no topic.
//   - Nothing is believed before the first answer. kafka-go makes room for whatever length it reads, and an HTTP
//     server cost it gigabytes. The first frame of a connection must be the list of requests that it asked for.
//   - A connection that fails is told as the library says it, with the settings that it may be. Only what the other
//     side proves ends the sink: a broker that restarts cuts connections without a word, too.
//   - A throttling broker is left alone on all connections (KIP-219). It reads nothing meanwhile, so what is sent
//     would outlive the process that sent it.
//   - One table says what each of Kafka's errors allows, with its remedy. A sink reports that with every attempt that
//     it repeats. Names of errors are franz-go's (kerr), which also explains those that only have to be asked again.
package wire
