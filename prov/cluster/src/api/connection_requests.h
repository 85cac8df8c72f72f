// The passive endpoints of a fabric, and the unanswered connection requests that they have reported
// (FI_CONNREQ). A request first waits for an endpoint that takes it. Then the request belongs to this
// endpoint. Until the application has accepted the request, the application can still reject it. Passive
// endpoints and requests have handles, and an application can put a handle into an fi_info. The handle of a
// request is a fid of class FI_CLASS_CONNREQ. An application may still have the handle of a request that no
// longer exists. So callers look up each handle here before they use it.
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
  /// Adds a request, unless `most` requests of `owner` already wait for an endpoint. Returns the handle of
  /// the request, or null.
  fid_t add(const connection::ConnectRequest& request, PassiveEndpoint* owner, std::size_t most);
  /// Returns the request with this handle, or nothing if it no longer waits for an endpoint.
  std::optional<connection::ConnectRequest> find(fid_t handle);
  /// Gives the request to the endpoint with the name `taker`. The passive endpoint tells the asker that
  /// `taker` will answer. Returns false if the request no longer waits.
  bool hand_over(fid_t handle, const connection::ConnectRequest& request, const SocketAddress& taker);
  /// Removes the request and returns it, so that the caller can answer it. Returns nothing if the request is
  /// already answered.
  std::optional<connection::ConnectRequest> take(fid_t handle);
  /// Removes the request, so that the caller can answer it. Returns false if the request is already answered,
  /// even if a new request has the same handle by now.
  bool take(fid_t handle, const connection::ConnectRequest& request);
  void enter(struct fid& handle, PassiveEndpoint& endpoint);
  void leave(struct fid& handle);
  /// Takes the address of the passive endpoint with this handle (PassiveEndpoint::give_up_name). Returns an
  /// empty address if there is no such endpoint, or if it keeps its address.
  SocketAddress take_name(fid_t handle);
  /// Removes all requests of an owner that no endpoint has taken, and returns them.
  std::vector<connection::ConnectRequest> take_all(PassiveEndpoint* owner);

 private:
  struct Entry {
    struct fid handle {};
    connection::ConnectRequest request;
    PassiveEndpoint* owner = nullptr;  ///< null once an endpoint has taken the request
  };

  std::mutex mutex_;  ///< guards waiting_; a thread that holds an engine lock may take it
  std::unordered_map<fid_t, std::unique_ptr<Entry>> waiting_;
  /// Guards passive_. While a thread holds this lock, the endpoints in passive_ stay open. A thread that
  /// takes this lock must hold neither an engine lock nor `mutex_`.
  std::mutex passive_mutex_;
  std::unordered_map<fid_t, PassiveEndpoint*> passive_;
};

}  // namespace cluster::api
