# Debian's cross compiler for arm64, with headers and libraries from a directory that util/arm64 fills with Debian's arm64
# packages, so that nothing of another architecture is installed on this machine. What is built runs under qemu's user mode,
# which ctest puts before each test program.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(CLUSTER_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/arm64-root ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${CLUSTER_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_SYSROOT ${CLUSTER_ARM64_ROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;${CLUSTER_ARM64_ROOT}")
