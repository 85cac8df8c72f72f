// Large messages between processes of one node: copied once, by both processes at the same time.
//
// The kernel may let two processes access each other's memory (Channel::memory). Then an announcement carries
// the address of the message, and a pull the address where its bytes belong. The sender answers such a pull
// by writing the bytes there, from the front (`placed` confirms it). Meanwhile the receiver copies pieces
// from the back, until the two meet. So each process copies as much as it has time for. A sender that is not
// in the library delays the message by no more than the piece that it was asked for. (KNEM and the MPI
// libraries know the single copy by the receiver.)
//
// All of this is an offer. A sender that cannot write answers with bulk. A receiver that cannot read pulls
// everything.
//
// A peer may write only while the request is in the list of this object. The writer checks before each piece
// that this side still runs, and the engine does not close while the list is not empty. So no peer writes to
// memory that the application has back. Registered regions are never offered: they may be closed at any time,
// and no peer can take their lock.
#pragma once

#include "protocol/channel.h"
#include "protocol/control_sender.h"

namespace cluster::protocol {

class DirectCopy {
 public:
  // --- sender ---
  /// Adds the address of a message to its announcement, if the message is in one piece and the peer can read
  /// it.
  static void offer_source(const PulledRequest& request, wire::Segment& announcement);
  /// Writes a range where the receiver wants it. Returns false if that is not possible.
  static bool place(ControlSender& control, const PulledRequest& request, const PullRange& range);

  // --- receiver ---
  /// Takes part in the transfer of `request` if the sender has offered its source.
  void begin(IncomingRequest& request) {
    if (request.channel->memory == nullptr) request.pull.source = 0;
    if (request.pull.source != 0) requests_.push_back(request);
  }
  void end(IncomingRequest& request) {
    if (requests_.linked(request)) requests_.remove(request);
  }
  static bool active(const IncomingRequest& request) { return Requests::linked(request); }
  bool idle() const { return requests_.empty(); }
  /// Returns how many bytes to request from the sender next. 0: enough are on their way.
  static std::size_t next_pull(const PullProgress& pull);
  /// Adds the address where the bytes of a pull belong.
  static void offer_target(const IncomingRequest& request, wire::Segment& pull);
  /// Copies one piece from the back. Returns false if the source cannot be read now.
  static bool copy_in(IncomingRequest& request);
  /// Calls visit(request) for each request with bytes left to copy. visit() may end the request.
  template <typename Visit>
  void each_copyable(Visit&& visit) {
    for (IncomingRequest* request = requests_.front(); request != nullptr;) {
      IncomingRequest* const next = requests_.after(*request);
      if (request->pull.end > request->pull.requested && request->pull.source != 0) visit(*request);
      request = next;
    }
  }

 private:
  using Requests = List<IncomingRequest, &IncomingRequest::direct>;

  Requests requests_;
};

}  // namespace cluster::protocol
