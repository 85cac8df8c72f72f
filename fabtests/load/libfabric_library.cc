#include "libfabric_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace load {
namespace {

template <typename Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function != nullptr) return;
  std::fprintf(stderr, "no %s in it: %s\n", name, dlerror());
  std::exit(2);
}

template <typename Function>
void find_old(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlvsym(handle, name, "FABRIC_1.3"));
}

}  // namespace

LibfabricLibrary open_library(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  LibfabricLibrary core;
  find(handle, "fi_getinfo", core.calls.getinfo);
  find(handle, "fi_dupinfo", core.calls.dupinfo);
  find(handle, "fi_freeinfo", core.calls.freeinfo);
  find_old(handle, "fi_getinfo", core.old_calls.getinfo);
  find_old(handle, "fi_dupinfo", core.old_calls.dupinfo);
  find_old(handle, "fi_freeinfo", core.old_calls.freeinfo);
  find(handle, "fi_fabric", core.fabric);
  decltype(&::fi_version) version = nullptr;
  find(handle, "fi_version", version);
  core.version = version();
  return core;
}

}  // namespace load
