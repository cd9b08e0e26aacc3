// Whether an experiment can be run at all.
#pragma once

#include "plan.pb.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// Checks everything that concerns one program at a time: indexes, order of
/// dependencies, counts, splits, names. After it, the rest of the worker may use
/// the experiment without looking. Throws std::runtime_error that says which plan,
/// rank and task is wrong and why.
void validate(const pb::Experiment& experiment, int workers);

}  // namespace mixdown
