# The same source once for each MPI that is installed. They may be installed
# side by side, so each is looked for by its own names and never as "mpi".

# mixdown_mpi(NAME PKG_CONFIG_FILE HEADER_SUBFOLDERS LIBRARY_NAMES LIBRARY_SUBFOLDERS DEBIAN_PACKAGE)
function(mixdown_mpi name pc header_folders library library_folders package)
  if(name IN_LIST MIXDOWN_SKIP)
    message(STATUS "mixdown: backend ${name} is skipped: MIXDOWN_SKIP names it")
    return()
  endif()
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(PC_${name} QUIET ${pc})
  endif()
  find_path(${name}_INCLUDE_DIR mpi.h
    HINTS ${PC_${name}_INCLUDE_DIRS}
    PATH_SUFFIXES ${header_folders}
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib /usr/include
    NO_DEFAULT_PATH)
  find_library(${name}_LIBRARY ${library}
    HINTS ${PC_${name}_LIBRARY_DIRS}
    PATH_SUFFIXES ${library_folders}
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib
    NO_DEFAULT_PATH)
  if(NOT ${name}_INCLUDE_DIR OR NOT ${name}_LIBRARY)
    message(STATUS "mixdown: backend ${name} is skipped: install ${package} to have it")
    return()
  endif()
  message(STATUS "mixdown: backend ${name}: ${${name}_LIBRARY}")
  mixdown_module(${name} modules/mpi_backend.cpp modules/mpi_communicator.cpp modules/mpi_types.cpp)
  target_compile_definitions(mixdown_${name} PRIVATE
    MIXDOWN_MPI_NAME="${name}" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_include_directories(mixdown_${name} SYSTEM PRIVATE ${${name}_INCLUDE_DIR})
  target_link_libraries(mixdown_${name} PRIVATE ${${name}_LIBRARY})
endfunction()

mixdown_mpi(openmpi ompi-c "openmpi/include" mpi "openmpi/lib;." libopenmpi-dev)
mixdown_mpi(mpich mpich "mpich" mpich "." libmpich-dev)

if(TARGET mixdown_mpich)
  target_sources(mixdown_mpich PRIVATE modules/mpich_wait.cpp modules/rebind.cpp)
  target_compile_definitions(mixdown_mpich PRIVATE MIXDOWN_MPI_YIELDS)
  target_link_libraries(mixdown_mpich PRIVATE ${CMAKE_DL_LIBS})
  mixdown_watch_yields(mpich)
  # Not a backend, so not named as one.
  add_library(mixdown_one_session MODULE session/one_session.cpp)
  set_target_properties(mixdown_one_session PROPERTIES PREFIX "" OUTPUT_NAME mixdown-one-session)
endif()

# That calls can be led elsewhere.
if(MIXDOWN_TESTING)
  add_library(rebound SHARED testing/rebound.cpp)
  add_executable(rebind-check testing/rebind_check.cpp modules/rebind.cpp)
  target_include_directories(rebind-check PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(rebind-check PRIVATE rebound)
  set_target_properties(rebound rebind-check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/testing
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/testing)
endif()
