// Package html writes what was found and measured as one page that people
// forward: a single file that loads nothing, for a browser, a phone or paper.
//
// A Page gathers results: an analysis (from traces, with its time line, or from
// its JSON), replays, predictions and pictures of pipeline orders. Page.Write
// answers first (one sentence, three numbers, six questions) and shows the
// evidence below:
//
//	answer.go        the sentence, the numbers and the questions
//	run.go           what only the traces tell: phases, steps, stragglers by step
//	timeline.go      slices by rank and lane; sample.go keeps them few
//	ranks.go ...     rows of the tables with their bars, as drawn on the server
//	comparison.go    a gate or a diff; compared.go its answer, strip.go its steps
//	heat.go          who wins where, of a table of measurements
//	result.go        the JSON of analyze, replay and simulate, read back
//	picture.go       checked SVG, its style kept to itself
//	write.go         the template, the embedded bundle and the content policy
//
// Tables and bars are HTML and SVG, so that they print and are read aloud; the
// script adds the time line, charts that zoom, and the choice of light or dark.
// The bundle in assets/dist is made of assets/src by scripts/build_html.sh and
// committed; building mixdown needs no npm.
//
// Everything from a trace is hostile: the template escapes it, names are
// shortened and their control characters made visible, data for the script
// hold no character that HTML knows, and the content policy lets nothing run or
// load but the bundle, named by its hash.
//
// Times are int64 ns. What is not known is said to be so, never shown as 0.
package html
