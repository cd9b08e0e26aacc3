// Package gate decides whether a run is worse than a baseline, for continuous
// integration: a policy of rules in, one outcome out, with the reason for it.
//
// # The way of a gate
//
//  1. Measure takes the values of every step of a run (package breakdown has
//     them): times of ranks, and communication by group role, operation, size class
//     and phase. The Record is small and can be committed; the result of a replay
//     makes one too (ReadRecord).
//  2. ReadPolicy reads the rules, Suggest writes a policy from a baseline's noise.
//  3. Evaluate looks first whether the runs are comparable: world size, device,
//     versions, layout of groups, operations and bytes of a step. Where they are
//     not there are no figures, but the item that differs.
//  4. Every rule becomes one check for each choice of labels. Steps are the samples,
//     but for the first ones. Package shift estimates the change and its interval;
//     p-values are corrected for all tests of the gate (Holm).
//  5. A check is a regression when the change reaches the relative and the absolute
//     limit and is no chance. It is inconclusive when the values could hide a change
//     of twice the limit, so that none that large passes.
//  6. Every breach gets its cause: the part of the step, the communication and the
//     rank that changed most, and the command that shows it. Waivers accept breaches
//     until a day.
//
// Package output writes the result in the formats that programs read.
//
// # Units
//
// Times are ns in a step; values of operations are means over all ranks that were
// read, so that parts add up to the whole. Where steps depend on the one
// before, intervals are wider for it. What differs from run
// to run (another node, a warmer machine) no test over steps can know: limits need
// room for that, and several baselines show how much.
package gate
