// The part of an endpoint that only FI_EP_MSG endpoints have: the connection's state as the application sees
// it, and the events of the connection.
//
// Operations read the state without a lock. The state changes under the engine's lock, before the event is
// written. So an application that has read FI_CONNECTED can send.
#pragma once

#include <rdma/fi_cm.h>

#include <atomic>
#include <optional>

#include "connection/connection_end.h"
#include "connection/passive_end.h"
#include "engine/engine.h"

namespace cluster::api {

class Endpoint;

class ConnectedEnd final : public connection::ConnectionListener {
 public:
  explicit ConnectedEnd(Endpoint& endpoint) : endpoint_(endpoint) {}

  /// Called if the application has opened the endpoint for a connection request. `name`: the address of the
  /// passive endpoint that got the request.
  void set_request(fid_t handle, const connection::ConnectRequest& request, const SocketAddress& name) {
    handle_ = handle;
    request_ = request;
    name_ = name;
  }
  /// Returns the address that fi_getname reports if the endpoint was opened for a connection request: the
  /// address of the passive endpoint, as with TCP. Otherwise returns an empty address, and fi_getname reports
  /// the endpoint's own address.
  const SocketAddress& name() const { return name_; }

  /// Called when the endpoint is enabled and its engine is attached. Takes over the request, if there is one.
  /// Returns false if the request no longer waits.
  bool take_request(engine::Engine& engine);
  int connect(const void* address, const void* data, std::size_t size);
  int accept(const void* data, std::size_t size);
  int shut_down(std::uint64_t flags);
  int get_peer(void* address, std::size_t* size);
  /// Cancels the receives that no message has matched.
  void cancel_receives();
  /// Called when the endpoint closes. Shuts the connection down. From now on this object writes no events.
  void close();

  /// Returns true while the connection exists. Sends and remote accesses can begin only then.
  bool connected() const { return phase_.load(std::memory_order_acquire) == Phase::connected; }
  /// Returns true if the connection, or the attempt, has ended.
  bool over() const { return phase_.load(std::memory_order_acquire) == Phase::over; }

  void connected(ConstBytes data) override;
  void refused(Status cause, ConstBytes data) override;
  void ended(const SocketAddress& peer, Status cause) override;

 private:
  enum class Phase : std::uint8_t { before, connected, over };

  Endpoint& endpoint_;
  fid_t handle_ = nullptr;
  std::optional<connection::ConnectRequest> request_;
  SocketAddress name_;
  SocketAddress asked_;  ///< the address that the application passed to fi_connect
  std::atomic<Phase> phase_{Phase::before};
  std::atomic<bool> closing_{false};
};

}  // namespace cluster::api
