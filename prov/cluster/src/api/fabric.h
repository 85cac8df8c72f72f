// A fabric: the root of an application's objects. provider/ opens it and passes a Platform to it. All objects
// of the fabric get their engines, clock and log from this Platform.
//
// The component api/ checks the arguments of calls and translates them to operations of the protocol, for
// example to a protocol::SendOp or a protocol::RecvOp. Completions come from protocol::CompletionQueue and
// are translated to entries in the queue's format.
//
// The behaviour follows the manual pages of libfabric 1.17 to 2.x.
#pragma once

#include <rdma/fi_domain.h>

#include <string>

#include "api/connection_requests.h"
#include "api/fid_object.h"
#include "api/platform.h"

namespace cluster::api {

/// Implements fi_fabric. `platform` must outlive the fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** handle, void* context, Platform& platform);

class Fabric : public fid_fabric, public RefCounted {
 public:
  using Handle = fid_fabric;

  Fabric(Platform& platform, const fi_fabric_attr* attributes, void* context);

  /// Returns the name with which the fabric was opened, or null if another provider has opened it.
  static const std::string* name_of(const fid_fabric& handle);

  Platform& platform() { return platform_; }
  /// Returns the connection requests of the fabric's passive endpoints.
  ConnectionRequests& requests() { return requests_; }

 private:
  Platform& platform_;
  std::string name_;
  ConnectionRequests requests_;
  InheritedFid inherited_fid_{fid};
};

}  // namespace cluster::api
