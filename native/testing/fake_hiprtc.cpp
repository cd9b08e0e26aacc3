// A compiler that is none, for tests: libhiprtc.so.6 with the functions that
// device/hip.cpp uses. The code that it makes of a source is the source, marked.
#include <cstring>
#include <string>

#include "testing/fake_cuda.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kCompilation = 6;  // HIPRTC_ERROR_COMPILATION

struct Program {
  std::string source;
  std::string log;
  std::string code;
};

}  // namespace

EXPORT int hiprtcCreateProgram(Program** program, const char* source, const char*, int, const char**, const char**) {
  *program = new Program{source, "", ""};
  return 0;
}
EXPORT int hiprtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
EXPORT int hiprtcCompileProgram(Program* program, int, const char**) {
  if (program->source.find("extern \"C\" __global__ void") == std::string::npos) {
    program->log = "the emulated compiler finds no kernel";
    return kCompilation;
  }
  program->code = MIXDOWN_FAKE_CODE + program->source;
  return 0;
}
EXPORT int hiprtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
EXPORT int hiprtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
EXPORT int hiprtcGetCodeSize(Program* program, size_t* bytes) {
  *bytes = program->code.size() + 1;
  return 0;
}
EXPORT int hiprtcGetCode(Program* program, char* code) {
  std::memcpy(code, program->code.c_str(), program->code.size() + 1);
  return 0;
}
