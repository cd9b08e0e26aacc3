// Package output writes a comparison of two runs, the result of a gate or of a
// diff, for people and for the programs that run them: text, JSON, Markdown (GitHub
// step summaries), JUnit XML, SARIF, GitHub annotations, the Go benchmark format and
// the JSON of github-action-benchmark. Both become a Document, and every format is
// written from that. Every format names each check, its outcome, its figures and,
// for a breach, its cause. What a reader of a format limits is cut with a line that
// says so.
//
// Names from traces are hostile: every format escapes them in its own way.
package output
