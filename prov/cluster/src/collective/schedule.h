// A schedule lists the actions of one member in one collective operation: sends, receives, combinations and
// copies. Each action begins when certain other actions are done. The algorithms (composition.cc) only write
// schedules. ScheduleRun runs them and is the same for all algorithms. Neither the algorithms nor ScheduleRun
// depends on links, time or other operations.
//
// The schedules of the sender and the receiver of a message contain the same message number. If two members
// exchange several messages with the same number, these match in the order in which both sides begin them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "wire/atomic.h"

namespace cluster::collective {

/// The position of a member in its team.
using Member = std::uint32_t;
/// The index of an action in a schedule.
using Step = std::uint32_t;
/// The step before all actions. An action that waits only for this step begins at once.
inline constexpr Step kStart = ~Step{0};

/// The operation and the type with which elements are combined. `op` is a value from AtomicOp::min to
/// AtomicOp::bxor.
struct Reduction {
  wire::AtomicOp op = wire::AtomicOp::sum;
  wire::AtomicType type = wire::AtomicType::uint8;
};

struct Action {
  enum class Kind : std::uint8_t {
    send,     ///< sends `source` to `member`
    spread,   ///< multicasts `source` to the leaders of all other nodes
    receive,  ///< receives from `member` into `target`
    combine,  ///< `target` op= `source`
    copy,     ///< copies `source` to `target`
    join,     ///< does nothing; is done when several other actions are done
  };

  Kind kind = Kind::join;
  std::uint16_t number = 0;
  Member member = 0;
  std::uint32_t awaited = 0;  ///< number of actions that this action still waits for
  /// Index in Schedule::edges() of the first edge to an action that waits for this action.
  Step first_edge = kStart;
  Bytes target{};
  ConstBytes source{};
};

/// Returns true for actions that send to other members or receive from them.
constexpr bool is_message(Action::Kind kind) { return kind <= Action::Kind::receive; }

class Schedule {
 public:
  using After = std::initializer_list<Step>;
  struct Edge {
    Step to;
    Step next;
  };
  /// The largest message number. Larger numbers are reduced modulo kNumberMax + 1.
  static constexpr std::uint16_t kNumberMax = 0xfff;

  explicit Schedule(Reduction reduction = {}) : reduction_(reduction) {
    actions_.reserve(kActionsFew);
    edges_.reserve(kActionsFew);
  }

  Step send(Member to, unsigned number, ConstBytes bytes, After after) {
    return add(Action::Kind::send, number, to, {}, bytes, after);
  }
  /// Multicasts to all members whose schedule receives from this member with this number.
  Step spread(unsigned number, ConstBytes bytes, After after) {
    return add(Action::Kind::spread, number, 0, {}, bytes, after);
  }
  Step receive(Member from, unsigned number, Bytes bytes, After after) {
    return add(Action::Kind::receive, number, from, bytes, {}, after);
  }
  Step combine(Bytes target, ConstBytes source, After after) {
    return add(Action::Kind::combine, 0, 0, target, source, after);
  }
  Step copy(Bytes target, ConstBytes source, After after) {
    return add(Action::Kind::copy, 0, 0, target, source, after);
  }
  /// Adds an action that is done when all `steps` are done.
  Step join(After steps) { return add(Action::Kind::join, 0, 0, {}, {}, steps); }
  Step join(std::span<const Step> steps) {
    return steps.size() == 1 ? steps.front() : add(Action::Kind::join, 0, 0, {}, {}, steps);
  }
  /// Returns memory that lives as long as the schedule.
  Bytes scratch(std::size_t size);

  const Reduction& reduction() const { return reduction_; }
  std::vector<Action>& actions() { return actions_; }
  const std::vector<Action>& actions() const { return actions_; }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  static constexpr std::size_t kActionsFew = 8;  ///< enough for most short operations

  Step add(Action::Kind kind, unsigned number, Member member, Bytes target, ConstBytes source,
           std::span<const Step> after);

  Reduction reduction_;
  std::vector<Action> actions_;
  std::vector<Edge> edges_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
};

/// Runs one schedule. This class determines which actions can begin, and performs combinations and copies
/// itself. The caller sends and receives the messages, and calls done() for each message.
class ScheduleRun {
 public:
  explicit ScheduleRun(Schedule schedule) : schedule_(std::move(schedule)) { ready_.reserve(size()); }

  /// Calls issue(step, action) for each send, spread and receive that can begin.
  template <typename Issue>
  void begin(Issue&& issue) {
    for (Step step = 0; step < schedule_.actions().size(); ++step) {
      if (schedule_.actions()[step].awaited == 0) ready_.push_back(step);
    }
    proceed(issue);
  }
  /// Called when the message of a step is done. Calls issue() for each message that can begin now.
  template <typename Issue>
  void done(Step step, Issue&& issue) {
    finish(step);
    proceed(issue);
  }
  bool finished() const { return done_ == schedule_.actions().size(); }
  std::size_t size() const { return schedule_.actions().size(); }
  const Action& action(Step step) const { return schedule_.actions()[step]; }

 private:
  /// Marks a step as done. Actions that waited only for this step become ready.
  void finish(Step step);
  void perform(const Action& action) const;

  /// Begins the ready actions in the order in which they became ready. Actions that became ready at the same
  /// moment begin in the order of the schedule.
  template <typename Issue>
  void proceed(Issue& issue) {
    for (; next_ready_ < ready_.size(); ++next_ready_) {
      const Step step = ready_[next_ready_];
      const Action& action = schedule_.actions()[step];
      if (is_message(action.kind)) {
        issue(step, action);
      } else {
        perform(action);
        finish(step);
      }
    }
  }

  Schedule schedule_;
  std::vector<Step> ready_;  ///< all steps that have become ready so far, each once
  std::size_t next_ready_ = 0;
  std::size_t done_ = 0;
};

}  // namespace cluster::collective
