// Package console is what a person sees of the commands: one writer for the terminal, one comparison of two versions of
// an object, one printer of changes, and the tables of the other commands.
//
// Decisions:
//
//   - Everything goes through one writer (screen.go), which shows what a terminal would act on as its code. Quoting the
//     known names in each command was refused: names, versions, selectors and errors come from others.
//   - Every command shows a Secret alike (secret.go): keyed hashes as they are, and (redacted) for any other value,
//     whatever the configuration lets through to the sinks. The file of a dead letter has the values.
package console
