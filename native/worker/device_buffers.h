// Device memory that communications read and write, and how it is filled and read
// from the host.
#pragma once

#include <cstdint>
#include <vector>

#include "device/gpu.h"
#include "worker/buffers.h"
#include "worker/operation.h"

namespace mixdown {

/// What a stream's communications share on the device: as StreamBuffers, of the
/// same sizes.
struct DeviceStreamBuffers {
  DeviceBuffer in;
  DeviceBuffer out;
};

/// Allocates the buffers, zeroed. Throws std::runtime_error when the device has not
/// that much memory.
std::vector<DeviceStreamBuffers> allocate_on(const Gpu& gpu, const BufferSizes& sizes);

/// Queues copies of all that the operation may touch, the guards too.
void all_to_device(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device, const DeviceStream& stream);
void all_to_host(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device, const DeviceStream& stream);

/// Queues copies of what the operation reads to the host, of what it writes to the
/// device.
void input_to_host(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device, const DeviceStream& stream);
void output_to_device(const Operation& o, const StreamBuffers& host, const DeviceStreamBuffers& device, const DeviceStream& stream);

}  // namespace mixdown
