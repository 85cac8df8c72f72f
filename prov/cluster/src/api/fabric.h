// A fabric: the root of an application's objects. provider/ opens it and passes the Platform, from which all objects below get their
// engines, clock and log.
//
// This component checks arguments and translates. Every way to send becomes one protocol::SendOp, every way to receive one
// protocol::RecvOp. Results are read from protocol::CompletionQueue and written as entries in the queue's format.
//
// Sources: the manual pages of libfabric 1.17 to 2.x.
#pragma once

#include <rdma/fi_domain.h>

#include <string>

#include "api/fid_object.h"
#include "api/platform.h"

namespace cluster::api {

/// The provider's fi_fabric. `platform` outlives the fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** handle, void* context, Platform& platform);

class Fabric : public fid_fabric, public RefCounted {
 public:
  using Handle = fid_fabric;

  Fabric(Platform& platform, const fi_fabric_attr* attributes, void* context);

  /// The name with which it was opened, or null: the handle is another provider's.
  static const std::string* name_of(const fid_fabric& handle);

  Platform& platform() { return platform_; }

 private:
  Platform& platform_;
  std::string name_;
  InheritedFid inherited_fid_{fid};
};

}  // namespace cluster::api
