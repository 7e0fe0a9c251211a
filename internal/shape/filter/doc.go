// Package filter decides by an expression which records go on to the sinks. The language is CEL, with the functions
// that Kubernetes adds for its own expressions: lists, regular expressions, quantities, URLs, addresses, formats.
//
// Decisions:
//
//   - Of an object only what an evaluation asks for is decoded, once, when it asks (part). To foretell from the checked
//     expression what it can ask for was refused: each function and macro would have to be known, and a path that is
//     missed is a wrong answer. A part that is asked anything but for a field becomes CEL's own map.
//   - Every answer is CEL's. A second evaluator, such as one of fields that equal constant strings, would be one to
//     keep in step.
//   - The bytes are proven to be JSON before the evaluation, and no number in them to be too large, also where no
//     field is asked for: whether a filter fails must not depend on what else it came to.
//   - A filter that fails lets its record pass, counted and logged: an audit trail would rather have too much.
//   - A filter chooses records, not objects. An object that stops matching is not a delete: an expression over op or
//     oldObject matches changes. Selectors choose objects.
//   - oldObject is what was delivered last, not what the server had before: nothing else may be kept (I9).
//   - An error's text is logged without the values that it quotes (withoutValues), since a filter sees the object
//     before it is redacted.
package filter
