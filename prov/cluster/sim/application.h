// The application of one process: sends, receives, cancels and peeks as its plan says, and shows the
// oracle all that comes of it. When it is told to finish it sends nothing new and takes in whatever is
// still on its way to it.
//
// Buffers are spoilt as soon as the library has given them back: whatever still looked at them would
// be found out.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "sim/application_environment.h"
#include "sim/quarantine.h"
#include "sim/rma_initiator.h"

namespace cluster::sim {

class Application {
 public:
  Application(const ApplicationEnvironment& environment, SeededRandom random);

  /// Whatever comes out of a completion queue.
  void complete(const protocol::Completion& completion);
  /// Does what it wants to do now; true if that was anything.
  bool turn();
  /// When it wants its turn though nothing happens to it.
  Time wake_at() const { return wake_at_; }

  void finish() { finishing_ = true; }
  /// Cancels every receive that still waits.
  void cancel_receives();
  /// True if it has nothing left to send.
  bool finished() const;
  /// True if every send has ended that ends at all.
  bool all_sent() const { return sends_under_way_ + remote_.under_way() == 0; }
  /// True if no operation is under way.
  bool idle() const { return all_sent() && receives_.empty(); }
  /// Throws if the library has touched what is not its own any more.
  void check_returned_buffers() const { quarantine_.check(); }
  std::uint64_t operations_ended() const { return ended_; }

 private:
  enum class Kind : std::uint8_t {
    receive,
    peek,
    take,  ///< receives a claimed message
    drop,  ///< throws one away
  };
  struct ReceiveOperation {
    Receive receive;
    Kind kind = Kind::receive;
    protocol::Peek peek = protocol::Peek::none;
    bool any = false;  ///< takes whatever comes
    std::uint64_t context = 0;
    MessageNumber claimed = 0;
    std::uint64_t claimed_at = 0;  ///< the moment
    std::unique_ptr<std::byte[]> buffer;
  };
  struct Claim {
    std::uint64_t context;
    MessageNumber message;
    std::uint64_t moment;
  };
  struct SendOperation {
    std::unique_ptr<std::byte[]> buffer;
    std::size_t length = 0;
  };

  // application.cc: sends
  void complete_send(const protocol::Completion& completion);
  bool is_sender() const;
  bool may_send() const;
  bool send_message();
  bool start_rma();
  void count_operation();
  Message draw_message();
  HostNumber destination();
  void release(SendOperation& operation);
  // application_receives.cc
  void complete_receive(const protocol::Completion& completion);
  bool post_receives();
  void draw_receive(Receive& receive);
  bool post(std::unique_ptr<ReceiveOperation> operation);
  bool post_any(bool tagged);
  bool drain_messages();
  bool post_peek();
  bool use_claimed_message();
  void cancel_random_receive();
  void cancel(std::uint64_t context);
  void peek_completed(ReceiveOperation& operation, const protocol::Completion& completion);
  void message_received(ReceiveOperation& operation, const protocol::Completion& completion);
  void wake_by(Time at);

  ApplicationEnvironment env_;
  SeededRandom random_;
  Quarantine quarantine_;
  RmaInitiator remote_;
  std::size_t size_max_;
  std::unordered_map<MessageNumber, SendOperation> sends_;
  std::unordered_map<std::uint64_t, std::unique_ptr<ReceiveOperation>> receives_;
  std::vector<std::uint64_t> waiting_;  ///< contexts of receives in the order they were posted
  std::vector<Claim> claims_;
  MessageNumber retry_message_ = 0;  ///< composed, but the engine had no room
  std::size_t sends_under_way_ = 0;
  std::size_t wildcards_posted_[2] = {0, 0};  ///< untagged, tagged
  std::uint32_t sent_ = 0;
  std::uint32_t tokens_ = 0;  ///< ping-pong: messages it may send
  std::uint64_t contexts_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t ended_before_ = 0;
  Time next_send_{};
  Time next_receive_{};
  Time wildcard_at_{};
  Time wake_at_ = kNever;
  bool finishing_ = false;
  bool receives_canceled_ = false;
};

}  // namespace cluster::sim
