// Package diff compares two runs of one job: what their steps cost, and which
// communication appeared, vanished, grew or shrank.
//
// # What is compared
//
// Operations are compared by the role of their process group, operation, size
// class and phase (package breakdown). A role is the group's description, else a
// name that is no mere number, else the shape of its members ("all ranks",
// "groups of 2, stride 4"): names are numbers as a rule, given anew in every run.
// What only one run knows (the phase, say) is left out of the comparison of both,
// with a note.
//
// Steps are the samples. Of each step the operations of all ranks are added up;
// a value of a run is the median over its steps, those that all ranks have. An
// operation that a step lacks counts as 0 there. Runs of different numbers of
// ranks are compared by the mean over the ranks that took part, and then the sums
// have no change. Traces without steps count as one sample each.
//
// # What stands out
//
// All changes are given, however small. Verdicts only colour them: appeared and
// vanished are facts; grew and shrank need a change that is large enough to
// matter and, where both runs have MinSteps steps, a Mann-Whitney U test over the
// steps with p below MaxP. The p-values are two-sided and not corrected for the
// number of rows: of many rows without any change, one in twenty is below 0.05.
// With fewer steps no test could tell, there is no p, and the bar is higher.
package diff
