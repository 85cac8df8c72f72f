// A fabric: the root of an application's objects. provider/ opens it and passes the Platform. All objects
// below get their engines, clock and log from the Platform.
//
// This component checks and translates arguments. Each call that sends becomes one protocol::SendOp, and each
// call that receives one protocol::RecvOp. Results come from protocol::CompletionQueue and become entries in
// the queue's format.
//
// Sources: the manual pages of libfabric 1.17 to 2.x.
#pragma once

#include <rdma/fi_domain.h>

#include <string>

#include "api/fid_object.h"
#include "api/platform.h"

namespace cluster::api {

/// Serves fi_fabric of the provider. `platform` outlives the fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** handle, void* context, Platform& platform);

class Fabric : public fid_fabric, public RefCounted {
 public:
  using Handle = fid_fabric;

  Fabric(Platform& platform, const fi_fabric_attr* attributes, void* context);

  /// Returns the name with which the fabric was opened; null if another provider opened it.
  static const std::string* name_of(const fid_fabric& handle);

  Platform& platform() { return platform_; }

 private:
  Platform& platform_;
  std::string name_;
  InheritedFid inherited_fid_{fid};
};

}  // namespace cluster::api
