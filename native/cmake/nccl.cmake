# Always built: NCCL and the CUDA driver are loaded when it runs.
mixdown_module(nccl
  device/cuda_api.cpp
  modules/nccl_api.cpp
  modules/nccl_backend.cpp
  modules/nccl_communicator.cpp
  modules/nccl_settings.cpp)
target_link_libraries(mixdown_nccl PRIVATE ${CMAKE_DL_LIBS})

# Stand-ins of both for tests, in a folder of their own: nothing finds them unless
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

  # For gpu_check.sh.
  add_executable(gpu-check testing/gpu_check.cpp)
  target_link_libraries(gpu-check PRIVATE mixdown_device)
  set_target_properties(gpu-check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/testing)
endif()
