// Package service answers questions that come over NATS: a micro service (ADR-32) with an endpoint per question. It
// knows nothing of what is asked.
//
// Decisions:
//
//   - One goroutine answers, one question after the other. Subscriptions have a goroutine each, which would outlive
//     Run. They only hand over, and nothing is answered any more when Run has returned.
//   - A connection of its own, made as the sink's is. A sink ends its connection with each Open, and while it is
//     stopped; questions about a stopped sink are the ones that matter.
//   - Answers go below inboxes only (Service.answers). The micro library would send them, and those to PING, INFO and
//     STATS, to whatever subject the asker names, so it has no part here but its types and constants.
//   - Few questions may wait, and few bytes (I6). The server drops nothing: the library does, and the asker hears
//     nothing and asks again.
package service
