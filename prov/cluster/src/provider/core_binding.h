// Binds the provider to one libfabric: the one that loaded it (the core). A process may hold several: MPI
// packages bring their own under any file name, and some are loaded RTLD_LOCAL. A wrong one has another
// version and other struct sizes, so the plugin has no DT_NEEDED on libfabric. bind_core() finds the core by
// the address that called fi_prov_ini, and its functions by dlsym. dlsym returns the newest version of each
// function, which keeps the fields that later versions appended to fi_info.
//
// The functions of this file have libfabric's own names, are hidden inside the plugin, and call the core. So
// the inline functions of libfabric's headers (fi_allocinfo, FI_WARN, ...) work as usual. Without a core, for
// example before bind_core(), they do nothing: no info, no log, no parameters, version 0.
//
// Once bound, the core stays loaded until the process ends. Threads that do not notice a dlclose may still
// make progress and write log lines.
#pragma once

#include <string>

namespace cluster::provider {

/// Binds to the shared object that `caller` points into; binding to the same one again is fine. Returns
/// false, with the cause in `reason`, if the object lacks a function or another object is already bound.
bool bind_core(const void* caller, std::string& reason);

}  // namespace cluster::provider
