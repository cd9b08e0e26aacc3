// What the programs that run a library alone have in common: the cases, and the
// turns that they take with the worker.
//
// Both run the same cases in the same order. The worker begins each iteration
// with a span long enough for the other to run the case first: it sees the
// iteration begin in the worker's control file. So the two are measured a moment
// apart, again and again, and what else the machine does hits both alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace alone {

/// One line of the file of cases: "all_reduce 65536 200 20".
struct Case {
  std::string op;     ///< all_reduce, all_to_all, send_recv
  int64_t bytes = 0;  ///< each rank's input
  int calls = 0;      ///< that are timed
  int before = 0;     ///< calls before them
};

struct Options {
  std::string dir;    ///< of the benchmark: cases in, times out
  int rank = 0;       ///< where no mpirun says it
  int size = 1;
  int warmup = 0;     ///< the worker's settings
  int iterations = 0;
  uint64_t seed = 0;
  std::string threads = "single";  ///< what MPI is to be ready for: single, serialized, multiple
};

/// --dir D --warmup N --iterations N --seed N [--rank N --size N] [--threads LEVEL]
Options parse(int argc, char** argv);

/// What the library does.
struct Library {
  int rank = 0;
  int size = 1;
  std::function<void()> barrier;
  /// The operation of a case between two buffers, ready to be called many times.
  std::function<std::function<void()>(const Case&, char* in, char* out)> make;
};

/// Runs each case once on its own, writes how long it took into DIR/ready, and
/// then takes turns with the worker. Writes DIR/alone.RANK: a line
/// "case start begin end median" for each turn, ns: start is that of the worker's
/// iteration, median that of the single calls.
void run(const Options& options, const Library& library);

}  // namespace alone
