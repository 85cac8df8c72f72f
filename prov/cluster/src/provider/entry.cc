// The door: fi_prov_ini, the only symbol that leaves this plugin. libfabric calls it when it loads the
// file, once per path by which it finds it, under a lock that forbids to call back into fi_getinfo
// and its like. The provider speaks whatever version the core that loads it speaks: a provider with
// the version of its headers would be passed over by every caller of a newer one.
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <exception>
#include <string>

#include "provider/capabilities.h"
#include "provider/core_binding.h"
#include "provider/provider.h"

namespace {

using cluster::provider::Provider;

Provider* provider = nullptr;

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** list) {
  return provider->get_info(version, node, service, flags, hints, list);
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  return provider->open_fabric(attributes, fabric, context);
}

/// Nothing to do: what is ours lives as long as the process, and calls may still come after this.
void clean_up() {}

constinit fi_provider handle = {
    .version = cluster::provider::kProviderVersion,
    .fi_version = 0,
    .context = {},
    .name = "cluster",
    .getinfo = get_info,
    .fabric = open_fabric,
    .cleanup = clean_up,
};

}  // namespace

extern "C" FI_EXT_INI {
  try {
    std::string reason;
    if (!cluster::provider::bind_core(__builtin_return_address(0), reason)) {
      // Heard only if the provider is in use already: without a core there is nobody to tell.
      FI_WARN(&handle, FI_LOG_CORE, "not loaded: %s\n", reason.c_str());
      return nullptr;
    }
    if (provider == nullptr) {
      handle.fi_version = fi_version();
      provider = new Provider(handle);
    }
    return &handle;
  } catch (const std::exception&) {
    return nullptr;
  }
}
