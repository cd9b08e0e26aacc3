// Package speedup says how much faster a variant ran than its baseline.
//
// Baseline and variant run alternately, so their i-th iterations saw the same
// machine. The speedup is the median of the paired ratios baseline/variant; its
// confidence interval is that of a median from order statistics, which assumes
// nothing about how times are distributed (Hollander and Wolfe, Nonparametric
// Statistical Methods, section 3.6). Fewer than six pairs cannot give 95 %:
// then the interval is the whole range, with a warning that says what it covers.
package speedup
