// Copies large messages between two processes on one node. Each byte is copied once, and both processes copy
// at the same time.
//
// The kernel may let two processes access each other's memory (Channel::memory). In this case, an
// announcement carries the address of the message. A pull carries the address in the receiver's memory where
// the requested bytes belong. The sender writes the bytes to this address, and confirms the pull with
// `placed`. The receiver pulls from the front of the message. Meanwhile the receiver itself copies pieces
// from the back, until front and back meet. So each process copies as much as it has time for. If the
// sender's application is not in a library call, the message waits only for pieces that the receiver has
// already requested. There are at most two such pieces. (In KNEM and in MPI libraries the receiver alone
// makes the single copy.)
//
// Neither side depends on access to the other's memory. A sender that cannot write to the receiver's memory
// answers with bulk segments. A receiver that cannot read the sender's memory pulls everything.
//
// The sender may write to the receiver's memory only while the receiver's request is in `requests_`. Before
// each piece, the sender checks that the receiver's process still runs. Before the receiver's engine closes,
// the engine waits until `requests_` is empty, but at most for the linger time (EventLoop::drain_on_close).
// Therefore only after the linger time can a sender write to memory that the application has got back. For a
// peer's large write, the receiver offers no address: the region may be closed at any time, and a peer cannot
// take the lock of the region table.
#pragma once

#include "protocol/channel.h"
#include "protocol/control_sender.h"

namespace cluster::protocol {

class DirectCopy {
 public:
  // --- sender ---
  /// Adds the address of a message to its announcement, if the message lies in one slice and the two
  /// processes can access each other's memory.
  static void offer_source(const PulledRequest& request, wire::Segment& announcement);
  /// Writes a range of the message into the receiver's memory, and sends `placed`. Returns false if this side
  /// cannot write to that memory.
  static bool place(ControlSender& control, const PulledRequest& request, const PullRange& range);

  // --- receiver ---
  /// Adds `request` to `requests_` if this side can read its bytes from the sender's memory.
  void begin(IncomingRequest& request) {
    if (request.channel->memory == nullptr) request.pull.source = 0;
    if (request.pull.source != 0) requests_.push_back(request);
  }
  void end(IncomingRequest& request) {
    if (requests_.linked(request)) requests_.remove(request);
  }
  static bool active(const IncomingRequest& request) { return Requests::linked(request); }
  bool idle() const { return requests_.empty(); }
  /// Returns how many bytes to request from the sender next. Returns 0 if enough bytes are in flight, or if
  /// only few bytes are left.
  static std::size_t next_pull(const PullProgress& pull);
  /// Adds to a pull the address where the requested bytes belong, if they are contiguous in this side's
  /// memory.
  static void offer_target(const IncomingRequest& request, wire::Segment& pull);
  /// Copies one piece from the back of the message. Returns false if the sender's memory cannot be read.
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
