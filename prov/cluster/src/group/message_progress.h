// How far each message of a stream is: waiting to be cut, on its way, or as far as its sender wants to know. Messages get
// there in the order in which they were posted. Memory for all that is taken when a message is posted: what has been taken is
// not lost for want of it later.
#pragma once

#include <cstdint>
#include <utility>

#include "base/address.h"
#include "base/ring_queue.h"
#include "base/status.h"
#include "group/listener.h"

namespace cluster::group {

/// Names a message to its sender.
using MessageToken = std::uint64_t;

/// When a message is over for its sender.
enum class Until : std::uint8_t { copied, arrived, delivered };

struct FinishedMessage {
  MessageToken token = 0;
  Status status = Status::ok;
  SocketAddress culprit{};  ///< of a failure: the member that did not get the message
};

class MessageProgress {
 public:
  /// Without memory for one more it throws, and nothing has changed.
  void reserve();
  /// After reserve().
  void posted(MessageToken token, Until until) { uncut_.push_back(std::pair(token, until)); }
  /// The oldest that was not cut yet ends before the sequence `end`.
  void cut(std::uint64_t end);
  /// The listener never gets what it has not got by now.
  void fail(const Listener& listener, Status why);
  /// All listeners have everything before `arrived`, and have delivered everything before `delivered`.
  void advance(std::uint64_t arrived, std::uint64_t delivered);

  /// No message gets any further.
  void abandon(Status why);

  /// Some message is not over though all of it has been cut.
  bool waits() const { return !under_way_.empty(); }
  RingQueue<FinishedMessage>& finished() { return finished_; }

 private:
  struct UnderWay {
    MessageToken token;
    std::uint64_t end;
    Until until;
    Status status = Status::ok;
    SocketAddress culprit{};
  };

  RingQueue<std::pair<MessageToken, Until>> uncut_;
  RingQueue<UnderWay> under_way_;
  RingQueue<FinishedMessage> finished_;
};

}  // namespace cluster::group
