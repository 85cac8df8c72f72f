// Binds the provider to the libfabric that has loaded it. That libfabric is called the core. A process may
// contain several libfabrics: some MPI packages include their own copy under another file name, and some load
// it with RTLD_LOCAL. Another libfabric may have another version and other struct sizes. If the plugin were
// linked to libfabric, the dynamic linker might bind it to the wrong one. Therefore the plugin has no
// DT_NEEDED entry for libfabric. bind_core() gets the address of the code that has called fi_prov_ini. The
// core is the shared object that contains this address. bind_core() finds the core's functions with dlsym.
// dlsym returns the newest version of each function, which supports the fields that later versions appended
// to fi_info.
//
// core_binding.cc defines functions that have libfabric's own names and call the core. They are hidden inside
// the plugin. The inline functions of libfabric's headers (fi_allocinfo, FI_WARN, ...) call them. Before
// bind_core() the hidden functions return no info, no parameters and version 0, and log nothing.
//
// Once bound, the core stays loaded until the process ends, even after a dlclose, because threads of the
// provider may still write log lines.
#pragma once

#include <string>

namespace cluster::provider {

/// Binds to the shared object that contains the address `caller`. If that object is already bound, returns
/// true. Returns false and sets `reason` to the cause if the object lacks a function or another object is
/// already bound.
bool bind_core(const void* caller, std::string& reason);

}  // namespace cluster::provider
