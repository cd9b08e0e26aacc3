# A package must run where no protobuf is installed, or one of another version: its
# worker has protobuf inside. libstdc++ stays the system's, though that could be linked
# in too: modules throw exceptions and hand out strings and vectors through the
# worker, and bring C++ libraries of the system with them (Gloo), which must all
# have one libstdc++. It is no burden: apt itself needs it.
option(MIXDOWN_STATIC_PROTOBUF "link protobuf into the worker" OFF)
set(Protobuf_USE_STATIC_LIBS ${MIXDOWN_STATIC_PROTOBUF})
find_package(Protobuf REQUIRED)

set(plan_proto ${CMAKE_SOURCE_DIR}/../replay/plan/plan.proto)
set(plan_dir ${CMAKE_BINARY_DIR}/plan)
file(MAKE_DIRECTORY ${plan_dir})
add_custom_command(
  OUTPUT ${plan_dir}/plan.pb.cc ${plan_dir}/plan.pb.h
  COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${CMAKE_SOURCE_DIR}/../replay/plan --cpp_out=${plan_dir} plan.proto
  DEPENDS ${plan_proto}
  VERBATIM)
add_library(mixdown_plan STATIC ${plan_dir}/plan.pb.cc)
target_include_directories(mixdown_plan SYSTEM PUBLIC ${plan_dir} ${Protobuf_INCLUDE_DIRS})
target_link_libraries(mixdown_plan PUBLIC ${Protobuf_LIBRARIES} Threads::Threads)
target_compile_options(mixdown_plan PRIVATE -w)

add_executable(mixdown-worker
  worker/accuracy.cpp
  worker/arguments.cpp
  worker/buffers.cpp
  worker/check.cpp
  worker/communicators.cpp
  worker/compile.cpp
  worker/compressed.cpp
  worker/control.cpp
  worker/device_buffers.cpp
  worker/device_executor.cpp
  worker/executor.cpp
  worker/exit.cpp
  worker/experiment.cpp
  worker/lower.cpp
  worker/main.cpp
  worker/match.cpp
  worker/modules.cpp
  worker/oracle.cpp
  worker/probe.cpp
  worker/results.cpp
  worker/run.cpp
  worker/staging.cpp
  worker/validate.cpp
  worker/values.cpp
  worker/watchdog.cpp)
target_include_directories(mixdown-worker PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(mixdown-worker PRIVATE mixdown_arith mixdown_codec mixdown_device mixdown_plan ${CMAKE_DL_LIBS} Threads::Threads)
