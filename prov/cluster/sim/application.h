// The application of one process. It follows its plan and reports every result to the oracles. After
// finish() it starts nothing new, and only receives the messages that are still under way to it.
#pragma once

#include "sim/application_environment.h"
#include "sim/atomic_initiator.h"
#include "sim/message_receiver.h"
#include "sim/message_sender.h"
#include "sim/multi_receiver.h"
#include "sim/quarantine.h"
#include "sim/rma_initiator.h"

namespace cluster::sim {

/// Notices when no operation of the application has ended for a while.
class StallWatch {
 public:
  static constexpr Duration kStallTime = 2ms;

  /// An operation has ended. `by_peer`: a peer has caused that. False if the host itself has: its receive
  /// was canceled, or its peek found no message.
  void operation_ended(bool by_peer) {
    ++ended_;
    if (by_peer) in_a_row_ = 0;
  }
  /// Returns true if no operation has ended for kStallTime. The measurement then restarts, as it does when
  /// an operation has ended. After kInARowMax such results in a row the network is probably away, so a
  /// measurement takes kLongStallTime.
  bool stalled(Time now) {
    const bool waited = ended_ == ended_before_ && stalled_at_ != Time{};
    if (waited && now < stalled_at_) return false;
    in_a_row_ += waited ? 1 : 0;
    ended_before_ = ended_;
    stalled_at_ = now + (in_a_row_ < kInARowMax ? kStallTime : kLongStallTime);
    return waited;
  }
  Time stalled_at() const { return stalled_at_; }

 private:
  static constexpr Duration kLongStallTime = 250ms;
  static constexpr unsigned kInARowMax = 64;

  std::uint64_t ended_ = 0;
  std::uint64_t ended_before_ = 0;  ///< the value of ended_ when the measurement began
  unsigned in_a_row_ = 0;
  Time stalled_at_{};
};

class Application {
 public:
  Application(const ApplicationEnvironment& environment, SeededRandom random);

  /// Handles a completion that was taken out of a queue.
  void complete(const protocol::Completion& completion);
  /// Starts all operations that are due. Returns true if there was any.
  bool turn();
  /// Returns when the application needs its next turn even if nothing arrives.
  Time wake_at() const { return wake_at_; }

  void finish() { finishing_ = true; }
  /// Cancels every receive that still waits.
  void cancel_receives();
  /// Returns true if all operations of the plan were started, and all of them except receives have ended.
  bool finished() const;
  /// Returns true if every operation has ended that is not a receive.
  bool all_sent() const { return under_way() == 0; }
  /// Returns true if no operation is under way.
  bool idle() const { return all_sent() && receiver_.idle() && multi_receiver_.idle(); }
  /// Throws if the library has written to buffers that it had already given back.
  void check_returned_buffers() const { quarantine_.check(); }

 private:
  std::size_t under_way() const { return sender_.under_way() + rma_.under_way() + atomics_.under_way(); }
  bool is_sender() const;
  bool may_start() const;
  bool start_operation();
  void complete_receive(const protocol::Completion& completion);
  bool drain_messages();
  HostNumber destination();
  void wake_by(Time at);

  ApplicationEnvironment env_;
  SeededRandom random_;
  Quarantine quarantine_;
  MessageSender sender_;
  MessageReceiver receiver_;
  MultiReceiver multi_receiver_;
  RmaInitiator rma_;
  AtomicInitiator atomics_;
  std::uint32_t started_ = 0;  ///< operations that are not receives
  std::uint32_t tokens_ = 0;   ///< ping-pong: how many messages it may send now
  Time next_start_{};
  StallWatch stall_;
  Time wake_at_ = kNever;
  bool finishing_ = false;
  bool receives_canceled_ = false;
};

}  // namespace cluster::sim
