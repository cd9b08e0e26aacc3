// Gloo alone, in a tight loop of its own API, as Gloo's own benchmark uses it:
// options and buffers are made once.
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bench/loop.h"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

std::function<void()> make(const Context& context, const alone::Case& c, char* in, char* out) {
  if (c.op == "all_reduce") {
    auto options = std::make_shared<gloo::AllreduceOptions>(context);
    options->setInput(reinterpret_cast<float*>(in), c.bytes / sizeof(float));
    options->setOutput(reinterpret_cast<float*>(out), c.bytes / sizeof(float));
    options->setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    return [options] { gloo::allreduce(*options); };
  }
  if (c.op == "all_to_all") {
    auto options = std::make_shared<gloo::AlltoallOptions>(context);
    options->setInput(in, c.bytes);
    options->setOutput(out, c.bytes);
    return [options] { gloo::alltoall(*options); };
  }
  if (c.op != "send_recv") throw std::runtime_error("unknown operation " + c.op);
  const int peer = context->rank ^ 1;
  std::shared_ptr<gloo::transport::UnboundBuffer> send = context->createUnboundBuffer(in, c.bytes);
  std::shared_ptr<gloo::transport::UnboundBuffer> receive = context->createUnboundBuffer(out, c.bytes);
  const uint64_t slot = uint64_t{1} << 63;
  if (context->rank % 2 == 0) {
    return [=] {
      send->send(peer, slot);
      send->waitSend();
      receive->recv(peer, slot);
      receive->waitRecv();
    };
  }
  return [=] {
    receive->recv(peer, slot);
    receive->waitRecv();
    send->send(peer, slot);
    send->waitSend();
  };
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const alone::Options options = alone::parse(argc, argv);
    gloo::transport::tcp::attr attr;
    attr.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(options.dir);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->connectFullMesh(store, device);
    gloo::BarrierOptions barrier(context);
    alone::Library library;
    library.rank = options.rank;
    library.size = options.size;
    library.barrier = [&] { gloo::barrier(barrier); };
    library.make = [&](const alone::Case& c, char* in, char* out) { return make(context, c, in, out); };
    alone::run(options, library);
    library.barrier();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo alone: %s\n", error.what());
    return 1;
  }
}
