#include "modules/ucx_settings.h"

#include <set>
#include <stdexcept>

namespace mixdown {
namespace {

// As UCX_TLS spells them; those for memory of the host.
const std::set<std::string> kTransports = {"self", "sm", "posix", "sysv", "cma",  "knem", "xpmem", "tcp", "ib",
                                           "rc",   "ud", "dc",    "rc_v", "rc_x", "ud_v", "ud_x",  "dc_x"};

constexpr size_t kMaxDigits = 12;  // of a size that UCX can count and a message can have

// N of "rndv=N", "" when it is not that.
std::string rendezvous_of(const std::string& word) {
  if (word.rfind("rndv=", 0) != 0) return "";
  const std::string digits = word.substr(5);
  const bool number = digits.size() <= kMaxDigits && digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? digits : "";
}

}  // namespace

UcxSettings UcxSettings::parse(const std::string& text) {
  UcxSettings settings;
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error("settings \"" + text + "\" of ucx: " + why);
  };
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (kTransports.count(word) > 0) {
      settings.transports += (settings.transports.empty() ? "" : ",") + word;
    } else if (const std::string threshold = rendezvous_of(word); !threshold.empty()) {
      if (!settings.rendezvous.empty()) fail("two sizes of rndv");
      settings.rendezvous = threshold;
    } else {
      fail("\"" + word + "\" is neither a transport (self, sm, posix, sysv, cma, knem, xpmem, tcp, ib, rc, rc_v, rc_x, ud, ud_v, "
           "ud_x, dc, dc_x) nor rndv=BYTES");
    }
  }
  return settings;
}

}  // namespace mixdown
