// An MPI alone, in a tight loop of its own API, with MPI_Init and MPI_COMM_WORLD
// as most programs use them. Compiled once for each implementation.
#include <mpi.h>

#include <cstdio>
#include <stdexcept>

#include "bench/loop.h"

namespace {

std::function<void()> make(const alone::Library& library, const alone::Case& c, char* in, char* out) {
  const int bytes = static_cast<int>(c.bytes);
  if (c.op == "all_reduce") {
    return [=] { MPI_Allreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
  }
  if (c.op == "all_to_all") {
    const int each = bytes / library.size;
    return [=] { MPI_Alltoall(in, each, MPI_UINT8_T, out, each, MPI_UINT8_T, MPI_COMM_WORLD); };
  }
  if (c.op != "send_recv") throw std::runtime_error("unknown operation " + c.op);
  const int peer = library.rank ^ 1;
  if (library.rank % 2 == 0) {
    return [=] {
      MPI_Send(in, bytes, MPI_UINT8_T, peer, 0, MPI_COMM_WORLD);
      MPI_Recv(out, bytes, MPI_UINT8_T, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
  }
  return [=] {
    MPI_Recv(out, bytes, MPI_UINT8_T, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(in, bytes, MPI_UINT8_T, peer, 0, MPI_COMM_WORLD);
  };
}

}  // namespace

int main(int argc, char** argv) {
  const alone::Options options = alone::parse(argc, argv);
  int granted = 0;
  const int level = options.threads == "multiple"     ? MPI_THREAD_MULTIPLE
                    : options.threads == "serialized" ? MPI_THREAD_SERIALIZED
                                                      : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, level, &granted);
  try {
    alone::Library library;
    MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &library.size);
    library.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
    library.make = [&](const alone::Case& c, char* in, char* out) { return make(library, c, in, out); };
    alone::run(options, library);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "MPI alone: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
