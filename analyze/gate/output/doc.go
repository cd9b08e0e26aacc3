// Package output writes the result of a gate for people and for the programs that
// run gates: text, JSON, Markdown (GitHub step summaries), JUnit XML, SARIF,
// GitHub annotations, the Go benchmark format and the JSON of
// github-action-benchmark. Every format names each check, its outcome, its figures
// and, for a breach, its cause. What a reader of a format limits is cut with a
// line that says so.
//
// Names from traces are hostile: every format escapes them in its own way.
package output
