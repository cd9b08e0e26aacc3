# Gloo has no pkg-config file in the Debian package.
find_path(GLOO_INCLUDE_DIR gloo/allreduce.h)
find_library(GLOO_LIBRARY gloo)

if(GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
  message(STATUS "mixdown: backend gloo: ${GLOO_LIBRARY}")
  set(gloo_sources modules/gloo_backend.cpp modules/gloo_communicator.cpp)
  add_library(gloo_headers INTERFACE)
  target_include_directories(gloo_headers SYSTEM INTERFACE ${GLOO_INCLUDE_DIR})
  target_link_libraries(gloo_headers INTERFACE ${GLOO_LIBRARY} Threads::Threads)

  mixdown_module(gloo ${gloo_sources} modules/gloo_module.cpp)
  target_link_libraries(mixdown_gloo PRIVATE gloo_headers)

  if(MIXDOWN_TESTING)
    mixdown_module(broken ${gloo_sources} testing/broken_module.cpp)
    target_link_libraries(mixdown_broken PRIVATE gloo_headers)
    set_target_properties(mixdown_broken PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/testing)
  endif()
else()
  message(STATUS "mixdown: backend gloo is skipped: install libgloo-dev to have it")
endif()
