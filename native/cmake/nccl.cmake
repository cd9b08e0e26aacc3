# Always built: the libraries and the drivers of their GPUs are loaded when it runs.
# The same source once for each.
function(mixdown_nccl name)
  mixdown_module(${name}
    modules/nccl_api.cpp
    modules/nccl_backend.cpp
    modules/nccl_communicator.cpp
    modules/nccl_settings.cpp)
  target_link_libraries(mixdown_${name} PRIVATE mixdown_driver)
endfunction()
mixdown_nccl(nccl)
mixdown_nccl(rccl)
target_compile_definitions(mixdown_rccl PRIVATE MIXDOWN_RCCL)

# Stand-ins of all for tests, in a folder of their own: nothing finds them unless
# LD_LIBRARY_PATH says so.
if(MIXDOWN_TESTING)
  function(mixdown_stand_in name soname)
    add_library(mixdown_${name} SHARED ${ARGN})
    target_include_directories(mixdown_${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(mixdown_${name} PRIVATE Threads::Threads)
    target_link_options(mixdown_${name} PRIVATE "-Wl,-soname,${soname}")
    set_target_properties(mixdown_${name} PROPERTIES
      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
      PREFIX "" OUTPUT_NAME ${soname} SUFFIX "" NO_SONAME ON SKIP_BUILD_RPATH ON
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/testing/emulated)
  endfunction()
  mixdown_stand_in(fake_cuda libcuda.so.1 testing/fake_cuda.cpp testing/fake_cuda_memory.cpp)
  mixdown_stand_in(fake_nccl libnccl.so.2 testing/fake_nccl.cpp testing/fake_nccl_kernel.cpp)
  target_link_libraries(mixdown_fake_nccl PRIVATE mixdown_fake_cuda mixdown_arith)
  # HIP's: the same under other names.
  mixdown_stand_in(fake_hip libamdhip64.so.6 testing/fake_cuda.cpp testing/fake_cuda_memory.cpp testing/fake_hip.cpp)
  mixdown_stand_in(fake_hiprtc libhiprtc.so.6 testing/fake_hiprtc.cpp)
  mixdown_stand_in(fake_rccl librccl.so.1 testing/fake_nccl.cpp testing/fake_nccl_kernel.cpp)
  target_link_libraries(mixdown_fake_rccl PRIVATE mixdown_fake_hip mixdown_arith)

  # For gpu_check.sh.
  add_executable(gpu-check testing/gpu_check.cpp)
  target_link_libraries(gpu-check PRIVATE mixdown_device)
  set_target_properties(gpu-check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/testing)
endif()
