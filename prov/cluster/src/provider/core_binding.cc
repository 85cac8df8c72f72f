#include "provider/core_binding.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cstdarg>
#include <cstdio>
#include <type_traits>

#include "os/cancellation.h"

namespace cluster::provider {
namespace {

constexpr std::size_t kLineMax = 1024;

#define CORE_FUNCTIONS(EACH) \
  EACH(version) EACH(dupinfo) EACH(freeinfo) EACH(log_enabled) EACH(log) EACH(param_define) EACH(param_get)

/// The core's functions as dlsym has found them, or null before bind_core(). They are plain pointers without
/// a destructor, so they can be called until the process ends.
struct CoreFunctions {
  const void* base = nullptr;  ///< the address at which the core's shared object begins
#define POINTER(name) decltype(&::fi_##name) name = nullptr;
  CORE_FUNCTIONS(POINTER)
};

constinit CoreFunctions core;

struct Loaded {
  const void* base = nullptr;
  const char* file = "";
};

Loaded object_of(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0) return {};
  return {found.dli_fbase, found.dli_fname == nullptr ? "" : found.dli_fname};
}

}  // namespace

bool bind_core(const void* caller, std::string& reason) {
  const Loaded object = object_of(caller);
  if (object.base == nullptr) {
    reason = "the caller of fi_prov_ini belongs to no loaded object";
    return false;
  }
  if (core.base != nullptr) {
    if (core.base != object.base)
      reason = "another copy of libfabric in this process uses the provider already";
    return core.base == object.base;
  }
  void* handle = dlopen(object.file, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr)
    // The first dlopen() may fail if the core is linked into the program itself.
    handle = dlopen(nullptr, RTLD_LAZY);
  if (handle == nullptr) {
    reason = std::string(object.file) + " cannot be opened again";
    return false;
  }
  CoreFunctions found;
  found.base = object.base;
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    void* symbol = dlsym(handle, name);
    // dlsym also searches the objects on which this object depends, and one of them may be another libfabric.
    if (symbol == nullptr || object_of(symbol).base != object.base) {
      missing += missing.empty() ? name : std::string(", ") + name;
      return;
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
#define FIND(name) find("fi_" #name, found.name);
  CORE_FUNCTIONS(FIND)
  if (!missing.empty()) {
    dlclose(handle);
    reason = std::string(object.file) + " lacks " + missing;
    return false;
  }
  core = found;
  return true;
}

}  // namespace cluster::provider

// --- Functions with libfabric's own names, hidden in this plugin. libfabric's headers call them. ---

using cluster::provider::core;

extern "C" {

std::uint32_t fi_version(void) { return core.version == nullptr ? 0 : core.version(); }

fi_info* fi_dupinfo(const fi_info* info) { return core.dupinfo == nullptr ? nullptr : core.dupinfo(info); }

void fi_freeinfo(fi_info* info) {
  if (core.freeinfo != nullptr) core.freeinfo(info);
}

int fi_log_enabled(const fi_provider* provider, fi_log_level level, fi_log_subsys subsystem) {
  return core.log_enabled == nullptr ? 0 : core.log_enabled(provider, level, subsystem);
}

void fi_log(const fi_provider* provider, fi_log_level level, fi_log_subsys subsystem, const char* function,
            int line, const char* format, ...) {
  if (core.log == nullptr) return;
  const cluster::os::PutOffCancellation off;
  char text[cluster::provider::kLineMax];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  core.log(provider, level, subsystem, function, line, "%s", text);
}

int fi_param_define(const fi_provider* provider, const char* name, fi_param_type type, const char* help,
                    ...) {
  if (core.param_define == nullptr) return -FI_ENOSYS;
  const cluster::os::PutOffCancellation off;  // because the core's function also writes log lines
  char text[cluster::provider::kLineMax];
  va_list arguments;
  va_start(arguments, help);
  std::vsnprintf(text, sizeof text, help, arguments);
  va_end(arguments);
  return core.param_define(provider, name, type, "%s", text);
}

int fi_param_get(fi_provider* provider, const char* name, void* value) {
  if (core.param_get == nullptr) return -FI_ENOSYS;
  const cluster::os::PutOffCancellation off;
  return core.param_get(provider, name, value);
}

}  // extern "C"
