// fi_prov_ini, the only symbol that the plugin exports. libfabric calls it when it loads the file, once per
// path on which it finds it, under a lock that forbids calls to fi_getinfo and the like. The provider reports
// the version of the core that loads it, because callers of a newer version skip providers of an older one.
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <exception>
#include <string>

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

/// Nothing to do: the provider lives as long as the process, and calls may still follow this one.
void clean_up() {}

constinit fi_provider handle = {
    .version = FI_VERSION(CLUSTER_VERSION_MAJOR, CLUSTER_VERSION_MINOR),  // of CMake's project()
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
      // Written only if the provider is bound already: without a core there is no log.
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
