#include "worker/device_buffers.h"

#include <stdexcept>
#include <string>

namespace mixdown {
namespace {

// Calls f(operation, host, device) for every call of the operation, with where its
// data is on both sides.
template <typename F>
void each_call(const Operation& o, char* host_in, char* host_out, char* device_in, char* device_out, F f) {
  if (o.parts.empty()) return f(o, pointers_of(o, host_in, host_out), pointers_of(o, device_in, device_out));
  for (const Operation& part : o.parts) {
    each_call(part, host_in + part.in_offset, host_out + part.out_offset, device_in + part.in_offset,
              device_out + part.out_offset, f);
  }
}

}  // namespace

std::vector<DeviceStreamBuffers> allocate_on(const Gpu& gpu, const BufferSizes& sizes) {
  // The libraries need some too.
  const int64_t free = gpu.free_bytes();
  if (sizes.total() > free / 10 * 9) {
    throw std::runtime_error("this worker needs " + std::to_string(sizes.total() >> 20) + " MiB of device memory for its buffers, " +
                             gpu.name() + " has " + std::to_string(free >> 20) + " free; scale the sizes down");
  }
  std::vector<DeviceStreamBuffers> buffers;
  buffers.reserve(sizes.in.size());
  for (size_t s = 0; s < sizes.in.size(); ++s) {
    buffers.push_back({DeviceBuffer(gpu, sizes.in[s], kGuard), DeviceBuffer(gpu, sizes.out[s], kGuard)});
  }
  return buffers;
}

void all_to_device(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device,
                   const DeviceStream& stream) {
  stream.to_device(device.in.data() - kGuard, host.in.data() - kGuard, o.input_buffer() + 2 * kGuard);
  stream.to_device(device.out.data() - kGuard, host.out.data() - kGuard, o.output_buffer() + 2 * kGuard);
}

void all_to_host(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device,
                 const DeviceStream& stream) {
  stream.to_host(host.in.data() - kGuard, device.in.data() - kGuard, o.input_buffer() + 2 * kGuard);
  stream.to_host(host.out.data() - kGuard, device.out.data() - kGuard, o.output_buffer() + 2 * kGuard);
}

void input_to_host(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device,
                   const DeviceStream& stream) {
  each_call(o, host.in.data(), host.out.data(), device.in.data(), device.out.data(),
            [&](const Operation& call, Pointers on_host, Pointers on_device) {
              stream.to_host(on_host.in, on_device.in, call.in_bytes);
            });
}

void output_to_device(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device,
                      const DeviceStream& stream) {
  each_call(o, host.in.data(), host.out.data(), device.in.data(), device.out.data(),
            [&](const Operation& call, Pointers on_host, Pointers on_device) {
              stream.to_device(on_device.out, on_host.out, call.out_bytes);
            });
}

}  // namespace mixdown
