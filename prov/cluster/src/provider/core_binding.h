// The one libfabric this provider talks to: the one that loaded it. The plugin has no DT_NEEDED on
// libfabric, since a process may hold several (MPI packages bring their own under any file name, one
// may be loaded RTLD_LOCAL) and the wrong one has other versions and other struct sizes. So the core
// is found by the address that called fi_prov_ini, and its functions by dlsym, which gives the newest
// version of each: the one that keeps what later versions appended to fi_info.
//
// The functions themselves are forwarders with libfabric's own names, hidden inside this plugin: the
// inline functions of its headers (fi_allocinfo, FI_WARN...) work as ever. Before bind_core() and in
// tests without a core they do nothing: no info, no log, no parameters, version 0.
//
// The core stays loaded for the life of the process once it is bound: progress and log lines may
// come from threads that do not notice a dlclose.
#pragma once

#include <string>

namespace cluster::provider {

/// Binds to the shared object that `caller` points into. Binding again to the same one is fine;
/// false, with words in `reason`, if it lacks something or another one is bound already.
bool bind_core(const void* caller, std::string& reason);

}  // namespace cluster::provider
