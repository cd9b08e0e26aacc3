// Package shift compares two samples of a quantity, such as the times of the
// steps of two runs: by how much the second lies above the first, within which
// interval that is certain, and how likely chance alone does the same.
//
// Nothing is assumed about how the values are distributed, but that both samples
// are from the same distribution except for a shift. The shift is that of Hodges
// and Lehmann: the median of all differences between a value of the second sample
// and one of the first. Its interval and its p-value both come from the
// Mann-Whitney U statistic (package diff has the test), so they agree: the
// interval of confidence 1 - a leaves out 0 when p is below a. Values that
// depend on each other (a slow drift, a machine that heats up) make intervals too
// narrow: Dependence and its bound tell, Widen makes up for it.
//
// Units are the caller's. There is no state and no randomness.
package shift
