// Package whatif answers "what would the step take if ...": what-ifs are small
// changes of what is played, each from its paper, each with its price named.
//
// A Question is one or several what-ifs, written as on the command line:
//
//	free=all_reduce@group:dp        such operations take no time
//	bandwidth=x2,latency=+5us       both together
//
// There are two things that a question can be asked of. A Step is the programs of
// all ranks as they ran, and what their operations took: package sim plays them
// against each other. An Order is a pipeline whose tasks may run in another order:
// sim.Model plays it. A what-if says in Known which of them it can change; several
// can be asked together when one of the two takes them all.
//
// Nothing is measured. Each answer lists in words what it rests on (Notes), and
// each Kind names its formula, its source, what it would cost in memory or
// accuracy, and what is not modelled. Where a trace lacks what a what-if needs, the
// answer is ErrNotApplicable with the reason.
package whatif
