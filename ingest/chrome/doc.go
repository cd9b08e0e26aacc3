// Package chrome reads Chrome trace event JSON as it is found in the wild.
//
// Profilers write this format with printf, so the files that matter most are
// often not JSON: names hold raw control bytes, lone backslashes, unescaped
// quotes or broken UTF-8, numbers are nan, jobs die and leave half a file. A
// JSON library stops at the first such byte and the whole trace is lost. This
// package has a scanner of its own that works in four steps:
//
//  1. A [Reader] moves a window of bounded size over the stream and finds the
//     event array, wherever it is: under "traceEvents" (any number of times),
//     as a bare array, or as objects one after the other.
//  2. Each event is scanned once, strictly as far as structure goes and
//     leniently inside strings and numbers; events written the way profilers
//     usually do take a shorter way to the same result. Args are only delimited; [Args]
//     reads them on demand.
//  3. An event whose structure is broken is scanned again with rules for the
//     faults that writers are known to make. If that does not help, the reader
//     looks for the next event boundary: one broken event costs one event.
//  4. Whatever was repaired, guessed, skipped or missing is counted in a
//     [Diagnostic] with its first byte offset and an example. Reading goes on.
//
// [Scan] does the same with several goroutines. It cuts the stream where events
// seem to begin and checks that each part ends exactly where the next begins.
//
// Times are decimal microseconds in the file and int64 nanoseconds here; they
// never pass through a float. "displayTimeUnit" is a hint for viewers and
// scales nothing.
//
// Events come in file order and mean what the file says: B and E events are
// delivered raw (a [Pairer] joins them), nothing is sorted, no category is
// interpreted.
package chrome
