package cli

import (
	"context"
	"errors"

	"mixdown/analyze/diff"
	"mixdown/analyze/export"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/analyze/slowdown"
	"mixdown/ingest/chrome"
	"mixdown/ingest/dataset"
	"mixdown/ingest/executiontrace"
	"mixdown/ingest/kineto"
	"mixdown/ingest/remote"
	"mixdown/ingest/share"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
	"mixdown/replay/auto"
	"mixdown/replay/cluster"
	"mixdown/replay/fold"
	"mixdown/replay/launch"
	"mixdown/replay/memory"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/schedule"
	"mixdown/replay/shim"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
	"mixdown/replay/tune/exports"
	"mixdown/replay/tune/imports"
	"mixdown/replay/tune/measure"
	"mixdown/replay/whatif"
)

// ExitCode is what a process ends with; scripts rely on the numbers.
type ExitCode int

// The exit codes, as "mixdown help exit-codes" explains them.
const (
	Done         ExitCode = 0
	Regression   ExitCode = 1
	Usage        ExitCode = 2
	Unreadable   ExitCode = 3
	Inconclusive ExitCode = 4
	ReplayFailed ExitCode = 5
)

// ErrUsage marks a command line that makes no sense.
var ErrUsage = errors.New("usage")

// ErrStrict: --strict was given and there are diagnostics.
var ErrStrict = errors.New("strict")

// codes maps what went wrong to the code; the first that matches counts.
var codes = []struct {
	err  error
	code ExitCode
}{
	{ErrUsage, Usage},
	{mix.ErrSyntax, Usage},
	{mix.ErrNoRule, Usage},
	{mix.ErrCompressionSyntax, Usage},
	{mix.ErrNoSubstitute, Usage},
	{launch.ErrUnknownBackend, Usage},
	{trace.ErrNoStep, Usage},
	{export.ErrTarget, Usage},
	{schedule.ErrSpec, Usage},
	{memory.ErrModel, Usage},
	{shim.ErrInapplicable, Usage},
	{plan.ErrNothingToReplay, Inconclusive},
	{plan.ErrReorder, Inconclusive},
	{plan.ErrNothingToFuse, Inconclusive},
	{whatif.ErrSyntax, Usage},
	{whatif.ErrNotApplicable, Inconclusive},
	{fold.ErrCannotFold, Inconclusive},
	{mix.ErrNothingToCompress, Inconclusive},
	{sim.ErrNoPipeline, Inconclusive},
	{sim.ErrNoStep, Inconclusive},
	{slowdown.ErrNotMeasured, Inconclusive},
	{sim.ErrBlocked, ReplayFailed},
	{sim.ErrTooLong, Inconclusive},
	{auto.ErrNoCosts, Inconclusive},
	{diff.ErrNotComparable, Inconclusive},
	{gate.ErrRegression, Regression},
	{gate.ErrInconclusive, Inconclusive},
	{gate.ErrNotComparable, Inconclusive},
	{gate.ErrTooFewSteps, Inconclusive},
	{gate.ErrPolicy, Usage},
	{gate.ErrNoBaseline, Usage},
	{gate.ErrNotRecord, Unreadable},
	{output.ErrFormat, Usage},
	{output.ErrCheck, Usage},
	{cluster.ErrNoEngine, Usage},
	{cluster.ErrEnvironment, Usage},
	{cluster.ErrRefused, Usage},
	{cluster.ErrEngine, ReplayFailed},
	{cluster.ErrLeader, ReplayFailed},
	{launch.ErrCannotResume, Inconclusive},
	{launch.ErrFailed, ReplayFailed},
	{launch.ErrUnavailable, ReplayFailed},
	{mix.ErrDeadlock, ReplayFailed},
	{mix.ErrInvalidPlan, ReplayFailed},
	{context.Canceled, ReplayFailed},
	{ErrStrict, Unreadable},
	{source.ErrNoTraces, Unreadable},
	{source.ErrEmpty, Unreadable},
	{source.ErrLimit, Unreadable},
	{chrome.ErrNotJSON, Unreadable},
	{chrome.ErrNotTrace, Unreadable},
	{chrome.ErrExecutionTrace, Unreadable},
	{kineto.ErrDuplicateRank, Unreadable},
	{kineto.ErrNoRank, Unreadable},
	{executiontrace.ErrNotExecutionTrace, Unreadable},
	{dataset.ErrForeign, Usage},
	{dataset.ErrTwice, Unreadable},
	{share.ErrSyntax, Usage},
	{remote.ErrName, Unreadable},
	{remote.ErrNotFound, Unreadable},
	{remote.ErrCredentials, Unreadable},
	{remote.ErrDenied, Unreadable},
	{remote.ErrChanged, Unreadable},
	{remote.ErrUnavailable, Unreadable},
	{remote.ErrCannot, Unreadable},
	{measure.ErrGrid, Usage},
	{measure.ErrVariant, Usage},
	{imports.ErrUnknownFormat, Usage},
	{imports.ErrMissing, Usage},
	{imports.ErrContradiction, Usage},
	{imports.ErrFormat, Unreadable},
	{exports.ErrUnknownFormat, Usage},
	{exports.ErrInexpressible, Usage},
	{exports.ErrNothing, Inconclusive},
	{measure.ErrNothing, Inconclusive},
	{tune.ErrNotTable, Unreadable},
	{tune.ErrRow, Unreadable},
	{dataset.ErrNotDataset, Unreadable},
	{dataset.ErrVersion, Unreadable},
	{dataset.ErrCorrupt, Unreadable},
	{dataset.ErrEmpty, Unreadable},
}

// CodeOf is the exit code for an error: its own, if it has one, or by what went wrong;
// errors that no rule knows come from reading files.
func CodeOf(err error) ExitCode {
	if err == nil {
		return Done
	}
	var outcome interface{ ExitCode() ExitCode }
	if errors.As(err, &outcome) {
		return outcome.ExitCode()
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return Unreadable
}
