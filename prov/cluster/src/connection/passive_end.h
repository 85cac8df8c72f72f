// A passive endpoint (fi_listen). It takes the requests of endpoints that want to connect to the application.
// It rejects a request, or hands the request over to another endpoint, which sends the accept itself.
#pragma once

#include "connection/courier.h"

namespace cluster::connection {

struct ConnectRequest {
  SocketAddress asker;
  std::uint64_t id = 0;

  friend bool operator==(const ConnectRequest&, const ConnectRequest&) = default;
};

/// Reports connection requests to the application. The engine's lock is held during each call.
class RequestListener {
 public:
  virtual ~RequestListener() = default;
  /// Returns false if the request cannot be reported. The passive endpoint then rejects the request.
  virtual bool requested(const ConnectRequest& request, ConstBytes data) = 0;
};

class PassiveEnd {
 public:
  PassiveEnd(Courier& courier, RequestListener& listener) : courier_(courier), listener_(listener) {}

  void arrived(const SocketAddress& from, const Message& message) {
    const ConnectRequest request{from, message.id};
    // The connecting endpoint sends a claim to the endpoint that took the request. If a claim arrives here,
    // that endpoint has closed, and this passive endpoint has its address now.
    if (message.kind == MessageKind::claim) return reject(request, {});
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
