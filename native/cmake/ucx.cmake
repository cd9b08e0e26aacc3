find_path(UCX_INCLUDE_DIR ucp/api/ucp.h)
find_library(UCX_UCP_LIBRARY ucp)
find_library(UCX_UCS_LIBRARY ucs)

if("ucx" IN_LIST MIXDOWN_SKIP)
  message(STATUS "mixdown: backend ucx is skipped: MIXDOWN_SKIP names it")
elseif(UCX_INCLUDE_DIR AND UCX_UCP_LIBRARY AND UCX_UCS_LIBRARY)
  message(STATUS "mixdown: backend ucx: ${UCX_UCP_LIBRARY}")
  add_library(ucx_headers INTERFACE)
  target_include_directories(ucx_headers SYSTEM INTERFACE ${UCX_INCLUDE_DIR})
  target_link_libraries(ucx_headers INTERFACE ${UCX_UCP_LIBRARY} ${UCX_UCS_LIBRARY} Threads::Threads)
  mixdown_module(ucx
    modules/ucx_backend.cpp
    modules/ucx_communicator.cpp
    modules/ucx_settings.cpp
    modules/ucx_worker.cpp)
  target_link_libraries(mixdown_ucx PRIVATE ucx_headers)
  mixdown_watch_yields(ucx MIXDOWN_WATCH_POLLS)
else()
  message(STATUS "mixdown: backend ucx is skipped: install libucx-dev to have it")
endif()
