// Large messages between processes of one node: copied once, by both processes at the same time.
//
// Where the kernel lets two processes reach each other's memory (Channel::memory), an announcement carries
// the address of the message, and a pull the address where its bytes belong. The sender answers such a pull
// by writing them there (`placed` confirms it), beginning at the front; the receiver meanwhile copies from
// the back, a piece at a time, until the two meet. So either process copies what it has time for, and a
// sender that is not in the library delays the message by no more than the piece it was asked for. (The
// single copy by the receiver is known from KNEM and the MPI libraries.)
//
// All of it is an offer: a sender that cannot write answers with bulk, a receiver that cannot read pulls
// everything.
//
// A peer may write only while the request is in the list of this object. The writer checks before each piece
// that this side still runs, and the engine does not close while the list holds anything, so memory that the
// application has back is never written. Registered regions are never offered: they may be closed at any
// time, and no peer can take their lock.
#pragma once

#include "protocol/channel.h"
#include "protocol/control_sender.h"

namespace cluster::protocol {

class DirectCopy {
 public:
  // --- sender ---
  /// Adds the address of a message to its announcement, if it is in one piece and the peer could read it.
  static void offer_source(const PulledRequest& request, wire::Segment& announcement);
  /// Writes a range where the receiver wants it. False if that is not possible.
  static bool place(ControlSender& control, const PulledRequest& request, const PullRange& range);

  // --- receiver ---
  /// Takes part in the transfer of `request`, if its source was offered.
  void begin(IncomingRequest& request) {
    if (request.channel->memory == nullptr) request.pull.source = 0;
    if (request.pull.source != 0) requests_.push_back(request);
  }
  void end(IncomingRequest& request) {
    if (requests_.linked(request)) requests_.remove(request);
  }
  static bool active(const IncomingRequest& request) { return Requests::linked(request); }
  bool idle() const { return requests_.empty(); }
  /// How many bytes the sender is asked to write next; 0: enough are under way.
  static std::size_t next_pull(const PullProgress& pull);
  /// Adds the address where the bytes of a pull belong.
  static void offer_target(const IncomingRequest& request, wire::Segment& pull);
  /// Copies one piece from the back. False if the source cannot be read (any more).
  static bool copy_in(IncomingRequest& request);
  /// Calls visit(request) for each that has bytes left to copy; visit may end the request.
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
