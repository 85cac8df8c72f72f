// A fabric: the root of an application's objects. provider/ opens it and hands it the Platform that
// everything below gets its engines, its clock and its log from.
//
// This room checks and translates, nothing else: every way to send folds into one
// protocol::SendOp, every way to receive into one protocol::RecvOp; what becomes of them is
// read from protocol::CompletionQueue and put into the entries that the application asked for.
//
//   fabric domain endpoint av cq cntr eq      one object of libfabric's each
//   msg tagged rma atomic collective mr name  one ops table each
//   fold.h                                    the shared part of sending and receiving
//
// Sources: the manual pages of libfabric 1.17 to 2.x.
#pragma once

#include <rdma/fi_domain.h>

#include "api/fid_object.h"
#include "api/platform.h"

namespace cluster::api {

/// The provider's fi_fabric. `platform` outlives the fabric.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** handle, void* context, Platform& platform);

class Fabric : public fid_fabric {
 public:
  using Handle = fid_fabric;

  Fabric(Platform& platform, std::uint32_t version, void* context);

  Platform& platform() { return platform_; }
  RefCount& ref_count() { return ref_count_; }

 private:
  Platform& platform_;
  RefCount ref_count_;
};

}  // namespace cluster::api
