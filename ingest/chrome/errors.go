package chrome

import "errors"

// Errors of [Reader.Next] for input that holds no trace at all. They come
// wrapped, with a byte offset and a hint. A damaged trace is not an error: see
// [Reader.Diagnostics].
var (
	// ErrEmpty means that there is nothing but white space.
	ErrEmpty = errors.New("empty file")

	// ErrNotJSON means that the input is no JSON, or is JSON cut off before
	// its first event.
	ErrNotJSON = errors.New("not JSON")

	// ErrNotTrace means that the input is JSON without trace events.
	ErrNotTrace = errors.New("JSON, but not a Chrome trace")

	// ErrExecutionTrace means that the input is a PyTorch execution trace
	// (a graph of operators without times), not a profiler trace.
	ErrExecutionTrace = errors.New("a PyTorch execution trace, not a profiler trace")
)
