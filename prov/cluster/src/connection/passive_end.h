// A passive endpoint (fi_listen): takes the requests of endpoints that want to connect to the application,
// and can reject them or hand them over to another endpoint. An accept does not go through this object: the
// accepting endpoint sends it.
#pragma once

#include "connection/courier.h"

namespace cluster::connection {

struct ConnectRequest {
  SocketAddress asker;
  std::uint64_t id = 0;

  friend bool operator==(const ConnectRequest&, const ConnectRequest&) = default;
};

/// Reports connection requests to the application. Called under the engine's lock.
class RequestListener {
 public:
  virtual ~RequestListener() = default;
  /// Returns false if the request cannot be reported. It is then rejected.
  virtual bool requested(const ConnectRequest& request, ConstBytes data) = 0;
};

class PassiveEnd {
 public:
  PassiveEnd(Courier& courier, RequestListener& listener) : courier_(courier), listener_(listener) {}

  void arrived(const SocketAddress& from, const Message& message) {
    const ConnectRequest request{from, message.id};
    if (message.kind == MessageKind::claim) return reject(request, {});  // this is no longer the taker
    if (message.kind != MessageKind::request) return;
    if (!listener_.requested(request, message.data)) reject(request, {});
  }
  /// Tells the asker that the endpoint `taker` will answer it.
  void hand_over(const ConnectRequest& request, const SocketAddress& taker) {
    courier_.send(request.asker, {MessageKind::taken, request.id, encode_address(taker)});
  }
  void reject(const ConnectRequest& request, ConstBytes data) {
    courier_.send(request.asker, {MessageKind::reject, request.id, data});
  }

 private:
  Courier& courier_;
  RequestListener& listener_;
};

}  // namespace cluster::connection
