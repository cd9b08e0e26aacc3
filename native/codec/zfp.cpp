// zfp (https://zfp.llnl.gov), loaded when it is used: nothing of it is needed to
// build. What is declared here is the part of its C interface, version 1.0, that is
// called.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "codec/codec.h"

namespace mixdown {
namespace {

enum ZfpType : int { kZfpFloat = 3, kZfpDouble = 4 };

struct ZfpApi {
  void* (*stream_open)(void* buffer, size_t bytes);
  void (*stream_close)(void* bits);
  void* (*zfp_stream_open)(void* bits);
  void (*zfp_stream_close)(void* stream);
  double (*zfp_stream_set_rate)(void* stream, double rate, int type, unsigned dims, int align);
  void (*zfp_stream_rewind)(void* stream);
  void* (*zfp_field_1d)(void* data, int type, size_t n);
  void (*zfp_field_free)(void* field);
  size_t (*zfp_compress)(void* stream, const void* field);
  size_t (*zfp_decompress)(void* stream, void* field);
  int64_t word_bits;  // that streams are padded to: builds differ
  std::string version;
};

ZfpApi load() {
  const char* path = std::getenv("MIXDOWN_ZFP");
  if (path == nullptr || *path == '\0') path = "libzfp.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("codec zfp: ") + dlerror() +
                             ": Debian and Ubuntu have it in libzfp1 (MIXDOWN_ZFP names another file)");
  }
  ZfpApi api;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("codec zfp: its library has no ") + name);
  };
  find(api.stream_open, "stream_open");
  find(api.stream_close, "stream_close");
  find(api.zfp_stream_open, "zfp_stream_open");
  find(api.zfp_stream_close, "zfp_stream_close");
  find(api.zfp_stream_set_rate, "zfp_stream_set_rate");
  find(api.zfp_stream_rewind, "zfp_stream_rewind");
  find(api.zfp_field_1d, "zfp_field_1d");
  find(api.zfp_field_free, "zfp_field_free");
  find(api.zfp_compress, "zfp_compress");
  find(api.zfp_decompress, "zfp_decompress");
  const auto* bits = static_cast<const size_t*>(dlsym(library, "stream_word_bits"));
  if (bits == nullptr) throw std::runtime_error("codec zfp: its library has no stream_word_bits");
  api.word_bits = static_cast<int64_t>(*bits);
  const char* const* version = static_cast<const char* const*>(dlsym(library, "zfp_version_string"));
  api.version = version != nullptr ? *version : "unknown";
  return api;
}

const ZfpApi& api() {
  static const ZfpApi loaded = load();  // tried again after it threw
  return loaded;
}

constexpr int64_t kBlock = 4;  // elements of a block in one dimension

class ZfpCodec final : public Codec {
 public:
  // As zfp_stream_set_rate rounds it, and never less than sign and exponent.
  ZfpCodec(double rate, bool doubles)
      : rate_(rate), block_bits_(std::max<int64_t>(std::lround(rate * kBlock), doubles ? 12 : 9)) {
    api();
  }

  int64_t size(int64_t count) const override {
    const int64_t bits = (count + kBlock - 1) / kBlock * block_bits_;
    return (bits + api().word_bits - 1) / api().word_bits * (api().word_bits / 8);
  }

  void encode(const float* in, int64_t count, char* out) const override { encode(in, kZfpFloat, count, out); }
  void encode(const double* in, int64_t count, char* out) const override { encode(in, kZfpDouble, count, out); }
  void decode(const char* in, int64_t count, float* out) const override { decode(in, count, kZfpFloat, out); }
  void decode(const char* in, int64_t count, double* out) const override { decode(in, count, kZfpDouble, out); }

  // A block's bits are an exponent and the planes of four transformed numbers, with
  // about a bit more for each number that says where they begin.
  bool of_itself() const override { return false; }
  double roundoff() const override { return std::min(1.0, std::exp2(6 - static_cast<double>(block_bits_) / kBlock)); }

 private:
  // A stream over a buffer, and an array. zfp reads and writes whole words: buffers
  // begin at multiples of eight.
  class Use {
   public:
    Use(const ZfpCodec& codec, const void* buffer, const void* data, int type, int64_t count)
        : bits_(api().stream_open(const_cast<void*>(buffer), static_cast<size_t>(codec.size(count)))),
          stream(api().zfp_stream_open(bits_)),
          field(api().zfp_field_1d(const_cast<void*>(data), type, static_cast<size_t>(count))) {
      if (bits_ == nullptr || stream == nullptr || field == nullptr) throw std::runtime_error("codec zfp: no memory");
      api().zfp_stream_set_rate(stream, codec.rate_, type, 1, 0);
      api().zfp_stream_rewind(stream);
    }
    ~Use() {
      api().zfp_field_free(field);
      api().zfp_stream_close(stream);
      api().stream_close(bits_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    void* bits_;

   public:
    void* const stream;
    void* const field;
  };

  void encode(const void* in, int type, int64_t count, char* out) const {
    if (count == 0) return;
    const Use use(*this, out, in, type, count);
    require(api().zfp_compress(use.stream, use.field), count);
  }

  void decode(const char* in, int64_t count, int type, void* out) const {
    if (count == 0) return;
    const Use use(*this, in, out, type, count);
    require(api().zfp_decompress(use.stream, use.field), count);
  }

  void require(size_t bytes, int64_t count) const {
    if (static_cast<int64_t>(bytes) == size(count)) return;
    throw std::runtime_error("codec zfp: " + std::to_string(count) + " elements became " + std::to_string(bytes) +
                             " bytes, expected " + std::to_string(size(count)));
  }

  double rate_;
  int64_t block_bits_;
};

}  // namespace

std::unique_ptr<Codec> make_zfp_codec(double rate, bool doubles) { return std::make_unique<ZfpCodec>(rate, doubles); }

std::string zfp_version() { return api().version; }

}  // namespace mixdown
