// Package align puts the clocks of a run's ranks on one time line.
//
// Ranks on one host share a clock; clocks of different hosts differ by
// microseconds to seconds and drift apart by up to some 50 ppm. Merged without
// correction such traces look plausible and are wrong: what is an offset shows
// as waiting. Estimate finds the offsets from the communication, Apply moves the
// times.
//
// # Collectives
//
// No member of an all_reduce, all_gather, reduce_scatter, all_to_all or barrier
// can end before the last member has arrived, and all end within microseconds of
// each other (1 to 7 us over 8 ranks in a real run). With T the end, s a small
// skew of the member's own and o(t) what its clock is ahead of the reference,
// rank r reads
//
//	end(r) = T + s(r) + o(r, end(r)),   o(r, t) = Offset + Drift x (t - Epoch)
//
// so that y = end(r) - T over x = end(r) is a line. Its slope is the median of
// the slopes between points half the sequence apart (Theil's incomplete method:
// H. Theil, "A rank-invariant method of linear and polynomial regression
// analysis", 1950), those left out that no clock can have (over 1000 ppm); its
// height is the median of what remains, which is the least absolute deviation.
// Where another line, level or through two points, explains more ends (to half of
// Agreement), it is taken instead: one lost event can shift all matches after it,
// and those scatter while the right ones lie on one line. Points far from the
// line are then left out and the slope is refined by least squares. A drift is kept only when the window is
// long enough to tell: when it exceeds three standard errors and makes more than
// a microsecond over the window. Broadcast, reduce, gather and scatter are not
// used: some of their members end early.
//
// T is unknown. The reference rank's own ends stand for it first; the other
// ranks follow outwards through the groups they share with ranks whose clock is
// known, five matches at least; then T becomes the median of all members'
// corrected ends and every line is fitted again.
//
// Two ranks that share fewer than five matches are taken to have one clock when
// those agree, and as unconnected when not: nothing is estimated from so few.
//
// # Messages
//
// Parts of the job that share no collectives may exchange messages. A receive
// can't end before its send has started, so each message from a to b bounds how
// far b's clock can be behind a's: with o the lead of b over a,
//
//	o <= end(recv, b) - start(send, a)     for messages from a to b
//	o >= start(send, b) - end(recv, a)     for messages from b to a
//
// which is Cristian's interval (F. Cristian, "Probabilistic clock
// synchronization", 1989). When it holds 0 nothing speaks against a common clock
// and none is moved; else the middle is taken and half the width is the
// Uncertainty. Messages in one direction only decide nothing. A broadcast or
// scatter is a message from its root, a reduce or gather one to it.
//
// # Wrong matches
//
// With the clocks known, a collective that one member left before another
// arrived is impossible. That is how wrong matches show: shifted by one or more,
// they violate it always, because a group's collectives follow each other.
// Result.Impossible lists them; they count for no residual. A shift that most
// matches share, in a run so regular that shifted ends agree as well as right
// ones, can't be told from an offset; ids or steps in the matching prevent it.
//
// # When nothing is moved
//
// A part whose ends agree already, to 20 us in the median in all its groups, has
// one clock and stays untouched; so does one whose ends scatter so much that the
// correction would not leave a quarter of it or less: Gloo's do on one host. Its
// times are compared as traced, and the Residual says how little that tells.
// Parts that nothing connects stay as they are and must not be compared:
// Result.Comparable says which can.
//
// # Precision
//
// Times are moved in integers; only the fit, on differences of times, uses
// floating point. Drift is kept in parts per 1e12.
package align
