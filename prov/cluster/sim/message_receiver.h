// The part of an application that receives messages. It posts receives and peeks, and cancels some receives.
// It receives or discards messages that its peeks have claimed. It shows the oracle how each operation
// ended.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "sim/application_environment.h"
#include "sim/quarantine.h"

namespace cluster::sim {

class MessageReceiver {
 public:
  MessageReceiver(const ApplicationEnvironment& environment, SeededRandom& random, Quarantine& quarantine);

  std::size_t largest_message() const { return size_max_; }
  /// Keeps as many receives posted as the plan says. Returns true if it posted one.
  bool post_receives();
  /// Returns when the next receive is due, or kNever if none is.
  Time wake_at() const { return wake_at_; }
  /// Posts a receive that takes every message of its kind: tagged or untagged.
  bool post_wildcard(bool tagged);
  bool post_peek();
  bool has_claims() const { return !claims_.empty(); }
  /// Receives or discards the message that was claimed first.
  bool use_claimed_message();
  void cancel_random();
  void cancel_all();
  /// Posts receives for the messages that must still arrive, and for those that have arrived.
  bool drain_messages();
  /// Returns true if messages must still arrive, or have arrived and wait for a receive.
  bool awaits_messages() const;
  /// Returns the message that the completion reports, or null.
  const Message* complete(const protocol::Completion& completion);
  bool idle() const { return operations_.empty(); }
  std::size_t posted() const { return operations_.size(); }

 private:
  enum class Kind : std::uint8_t { receive, peek, receive_claimed, discard_claimed };
  struct Operation {
    Receive receive;
    Kind kind = Kind::receive;
    protocol::Peek peek = protocol::Peek::none;
    bool wildcard = false;  ///< takes every message of its kind
    std::uint64_t context = 0;
    MessageNumber claimed = 0;
    std::unique_ptr<std::byte[]> buffer;
  };
  struct Claim {
    std::uint64_t context;
    MessageNumber message;
  };

  void draw_receive(Receive& receive);
  bool post(std::unique_ptr<Operation> operation);
  void cancel(std::uint64_t context);
  void peek_completed(Operation& operation, const protocol::Completion& completion);
  const Message* receive_completed(Operation& operation, const protocol::Completion& completion);

  ApplicationEnvironment env_;
  SeededRandom& random_;
  Quarantine& quarantine_;
  std::size_t size_max_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Operation>> operations_;  ///< by context
  std::vector<std::uint64_t> posted_;                                         ///< contexts in posting order
  std::vector<Claim> claims_;
  std::size_t wildcards_posted_[2] = {0, 0};  ///< untagged, tagged
  std::uint64_t contexts_ = 0;
  Time next_receive_{};
  Time wake_at_ = kNever;
};

}  // namespace cluster::sim
