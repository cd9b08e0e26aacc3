# Each library alone in a loop of its own API, for bench/cost: testing/alone-NAME
# beside the worker.
function(mixdown_alone name)
  add_executable(alone-${name} bench/loop.cpp worker/buffers.cpp ${ARGN})
  target_include_directories(alone-${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  set_target_properties(alone-${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/testing)
endfunction()

if(MIXDOWN_TESTING)
  if(TARGET mixdown_gloo)
    mixdown_alone(gloo bench/gloo_alone.cpp)
    target_link_libraries(alone-gloo PRIVATE gloo_headers)
  endif()
  foreach(name openmpi mpich)
    if(TARGET mixdown_${name})
      mixdown_alone(${name} bench/mpi_alone.cpp)
      target_compile_definitions(alone-${name} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
      target_include_directories(alone-${name} SYSTEM PRIVATE ${${name}_INCLUDE_DIR})
      target_link_libraries(alone-${name} PRIVATE ${${name}_LIBRARY})
    endif()
  endforeach()
  # Both wait alike: with more ranks than cores MPICH's own way of waiting takes
  # a thousand times as long.
  if(TARGET alone-mpich)
    target_sources(alone-mpich PRIVATE modules/mpich_yield.cpp)
    target_link_libraries(alone-mpich PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(alone-mpich PROPERTIES ENABLE_EXPORTS ON)
  endif()
endif()
