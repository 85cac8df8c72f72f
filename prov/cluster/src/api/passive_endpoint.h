// A passive endpoint (fi_passive_ep). Its engine takes connection requests, and has no completion queues.
// Each request becomes an FI_CONNREQ event. The application opens an endpoint for the request and accepts
// (fi_accept), or it rejects the request (fi_reject). When the passive endpoint closes, it rejects the
// requests for which no endpoint was enabled.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <mutex>

#include "api/auth_key.h"
#include "api/eq.h"
#include "api/fabric.h"
#include "api/fid_object.h"
#include "connection/passive_end.h"

namespace cluster::api {

class PassiveEndpoint : public fid_pep, public RefCounted, private connection::RequestListener {
 public:
  using Handle = fid_pep;

  static int open(Fabric& fabric, const fi_info* info, fid_pep** handle, void* context);
  ~PassiveEndpoint();

  /// Frees the port and returns the address. The active endpoint that the application opens with this handle
  /// (fi_endpoint) then gets the address. Returns an empty address if this endpoint listens, or cannot open
  /// its port.
  SocketAddress give_up_name();

  int bind(fid_t object, std::uint64_t flags);
  int control(int command, void* argument);
  int listen();
  int reject(fid_t handle, const void* data, std::size_t size);
  /// Tells the asker that the endpoint with the name `taker` will answer the request.
  void hand_over(const connection::ConnectRequest& request, const SocketAddress& taker);
  int get_name(void* address, std::size_t* size);
  int set_name(void* address, std::size_t size);
  int get_option(int level, int name, void* value, std::size_t* size);

 private:
  static constexpr std::size_t kBacklog = 1024;  ///< requests that may wait, unless FI_BACKLOG sets a number

  struct FreeInfo {
    void operator()(fi_info* info) const { platform->free_info(info); }
    Platform* platform;
  };
  using InfoPointer = std::unique_ptr<fi_info, FreeInfo>;

  PassiveEndpoint(Fabric& fabric, InfoPointer info, void* context);

  int ensure_engine();  // under mutex_
  InfoPointer info_for(const connection::ConnectRequest& request) const;
  bool requested(const connection::ConnectRequest& request, ConstBytes data) override;

  InheritedFid inherited_fid_{fid};
  /// Guards eq_, requested_name_, backlog_, listening_ and engine_, because several threads may call
  /// fi_listen, fi_getname and the like at once. Taken before the engine's lock. Once the endpoint listens,
  /// these members do not change, so hand_over() and requested() read them without this lock.
  std::mutex mutex_;
  Ref<Fabric> fabric_;
  Ref<Eq> eq_;
  InfoPointer info_;
  SocketAddress requested_name_;
  std::size_t backlog_ = kBacklog;
  bool listening_ = false;
  bool closing_ = false;  ///< all further requests are rejected; guarded by the engine's lock
  SocketAddress name_;    ///< the name under which this endpoint listens
  AuthKey auth_key_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace cluster::api
