#include "modules/nccl_settings.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <stdexcept>

namespace mixdown {
namespace {

// As NCCL's own tuner file spells them, and as NCCL_ALGO does.
const std::map<std::string, std::string> kAlgorithms = {
    {"ring", "Ring"}, {"tree", "Tree"}, {"collnet_direct", "CollnetDirect"}, {"collnet_chain", "CollnetChain"},
    {"nvls", "NVLS"}, {"nvls_tree", "NVLSTree"}, {"pat", "PAT"}};
const std::map<std::string, std::string> kProtocols = {{"ll", "LL"}, {"ll128", "LL128"}, {"simple", "Simple"}};
constexpr int kMaxChannels = 64;  // NCCL's MAXCHANNELS

// N of "ch=N", 0 when it is not that.
int channels_of(const std::string& word) {
  int n = 0;
  const char* end = word.data() + word.size();
  if (word.rfind("ch=", 0) != 0) return 0;
  const auto [stop, error] = std::from_chars(word.data() + 3, end, n);
  return error == std::errc() && stop == end && n >= 1 && n <= kMaxChannels ? n : 0;
}

}  // namespace

NcclSettings NcclSettings::parse(const std::string& text, const std::string& library) {
  NcclSettings settings;
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error("settings \"" + text + "\" of " + library + ": " + why);
  };
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (const auto algorithm = kAlgorithms.find(word); algorithm != kAlgorithms.end()) {
      if (!settings.algorithm.empty()) fail("two algorithms");
      settings.algorithm = algorithm->second;
    } else if (const auto protocol = kProtocols.find(word); protocol != kProtocols.end()) {
      if (!settings.protocol.empty()) fail("two protocols");
      settings.protocol = protocol->second;
    } else if (const int n = channels_of(word); n > 0) {
      if (settings.channels > 0) fail("two numbers of channels");
      settings.channels = n;
    } else {
      fail("\"" + word + "\" is neither an algorithm (ring, tree, collnet_direct, collnet_chain, nvls, nvls_tree, pat) nor "
           "a protocol (ll, ll128, simple) nor ch=1 to ch=64");
    }
  }
  return settings;
}

void NcclEnvironment::Variable::set(const std::string& value) {
  if (value.empty()) return;
  if (const char* now = std::getenv(name)) {
    had = true;
    before = now;
  }
  changed = true;
  setenv(name, value.c_str(), 1);
}

void NcclEnvironment::Variable::restore() const {
  if (!changed) return;
  if (had) {
    setenv(name, before.c_str(), 1);
  } else {
    unsetenv(name);
  }
}

NcclEnvironment::NcclEnvironment(const NcclSettings& settings) {
  algorithm_.set(settings.algorithm);
  protocol_.set(settings.protocol);
}

NcclEnvironment::~NcclEnvironment() {
  algorithm_.restore();
  protocol_.restore();
}

}  // namespace mixdown
