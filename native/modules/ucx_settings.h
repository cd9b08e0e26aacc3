// What "posix/rndv=65536" in "ucx:posix/rndv=65536" means.
#pragma once

#include <string>

namespace mixdown {

/// Settings of one instance of the backend; "" leaves the choice to UCX.
struct UcxSettings {
  std::string transports;  ///< value of UCX_TLS, "" for the backend's choice
  std::string rendezvous;  ///< value of UCX_RNDV_THRESH, bytes

  /// Reads words separated by '/': names of transports (self, sm, posix, sysv, cma,
  /// knem, xpmem, tcp, ib, rc, rc_v, rc_x, ud, ud_v, ud_x, dc, dc_x), any number of them, and
  /// rndv=N, from so many bytes on the receiver fetches a message, once. Throws
  /// std::runtime_error.
  static UcxSettings parse(const std::string& text);
};

}  // namespace mixdown
