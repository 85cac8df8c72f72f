// The provider of this process: the options as read at load, fi_getinfo and fi_fabric. Created once, in
// fi_prov_ini, and never destroyed.
#pragma once

#include <rdma/providers/fi_prov.h>

#include "provider/core_log.h"
#include "provider/getinfo.h"
#include "provider/machine.h"
#include "provider/options.h"

namespace cluster::provider {

class Provider {
 public:
  /// Defines the options with the core and reads them, which libfabric allows at load only. `handle` is a
  /// static object.
  explicit Provider(fi_provider& handle);

  int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const fi_info* hints, fi_info** list);
  int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

 private:
  CoreLog log_;
  bool refused_ = false;  ///< an option has a value that is not allowed
  Options options_;
  GetInfo getinfo_;
  Machine machine_;
};

}  // namespace cluster::provider
