// The passive endpoints of a fabric, and the connection requests that they have reported (FI_CONNREQ) and
// that nobody has answered yet. Both have handles that an application may put into an fi_info. The handle of
// a request is a fid of class FI_CLASS_CONNREQ. An application may still have the handle of a request that no
// longer exists, so a handle is looked up here before it is used.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "connection/passive_end.h"

namespace cluster::api {

class PassiveEndpoint;

class ConnectionRequests {
 public:
  /// Adds a request, unless `owner` already has `most` requests here. Returns its handle, or null.
  fid_t add(const connection::ConnectRequest& request, const void* owner, std::size_t most);
  /// Returns the request with this handle, or nothing if it no longer waits.
  std::optional<connection::ConnectRequest> find(fid_t handle);
  /// Like find(), and removes the request. The caller answers it.
  std::optional<connection::ConnectRequest> take(fid_t handle);
  void enter(struct fid& handle, PassiveEndpoint& endpoint);
  void leave(struct fid& handle);
  /// Returns the passive endpoint with this handle, or null.
  PassiveEndpoint* passive(fid_t handle);
  /// Removes all requests of an owner, and returns them.
  std::vector<connection::ConnectRequest> take_all(const void* owner);

 private:
  struct Entry {
    struct fid handle {};
    connection::ConnectRequest request;
    const void* owner = nullptr;
  };

  std::mutex mutex_;
  std::unordered_map<fid_t, std::unique_ptr<Entry>> waiting_;
  std::unordered_map<fid_t, PassiveEndpoint*> passive_;
};

}  // namespace cluster::api
