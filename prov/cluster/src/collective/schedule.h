// What one member of a team does in one collective operation: sends, receives, combinations and copies. Each begins when the
// actions before it are done. An algorithm (composition.cc) only writes such a schedule; ScheduleRun runs it and knows no
// algorithm. Neither of them knows links, time or other operations.
//
// Sender and receiver of a message write the same number into their schedules. Messages of one number between the same two
// members are matched in the order in which both sides begin them.
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
/// An action of a schedule.
using Step = std::uint32_t;
/// An action after this one begins at once.
inline constexpr Step kStart = ~Step{0};

/// How elements are combined: one of the operations min to bxor.
struct Reduction {
  wire::AtomicOp op = wire::AtomicOp::sum;
  wire::AtomicType type = wire::AtomicType::uint8;
};

struct Action {
  enum class Kind : std::uint8_t {
    send,     ///< `source` to `member`
    spread,   ///< `source` to the leaders of all other nodes, by multicast
    receive,  ///< from `member` into `target`
    combine,  ///< `target` op= `source`
    copy,     ///< `source` to `target`
    join,     ///< nothing: several actions are done
  };

  Kind kind = Kind::join;
  std::uint16_t number = 0;
  Member member = 0;
  std::uint32_t awaited = 0;  ///< actions before it that are not done
  Step first_edge = kStart;   ///< Schedule::edges, of those that come after it
  Bytes target{};
  ConstBytes source{};
};

/// True for actions that send to other members or receive from them.
constexpr bool is_message(Action::Kind kind) { return kind <= Action::Kind::receive; }

class Schedule {
 public:
  using After = std::initializer_list<Step>;
  struct Edge {
    Step to;
    Step next;
  };
  /// The largest number of a message; larger ones wrap around.
  static constexpr std::uint16_t kNumberMax = 0xfff;

  explicit Schedule(Reduction reduction = {}) : reduction_(reduction) {
    actions_.reserve(kActionsFew);
    edges_.reserve(kActionsFew);
  }

  Step send(Member to, unsigned number, ConstBytes bytes, After after) {
    return add(Action::Kind::send, number, to, {}, bytes, after);
  }
  /// To all members that receive from this one under the number.
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
  /// Done when all of these are.
  Step join(After steps) { return add(Action::Kind::join, 0, 0, {}, {}, steps); }
  Step join(std::span<const Step> steps) {
    return steps.size() == 1 ? steps.front() : add(Action::Kind::join, 0, 0, {}, {}, steps);
  }
  /// Memory that lives as long as the schedule.
  Bytes scratch(std::size_t size);

  const Reduction& reduction() const { return reduction_; }
  std::vector<Action>& actions() { return actions_; }
  const std::vector<Action>& actions() const { return actions_; }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  static constexpr std::size_t kActionsFew = 8;  ///< of most short operations

  Step add(Action::Kind kind, unsigned number, Member member, Bytes target, ConstBytes source,
           std::span<const Step> after);

  Reduction reduction_;
  std::vector<Action> actions_;
  std::vector<Edge> edges_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
};

/// Runs one schedule: knows which actions may begin. Messages are handed to the caller, which says when each is done;
/// combinations and copies are done here.
class ScheduleRun {
 public:
  explicit ScheduleRun(Schedule schedule) : schedule_(std::move(schedule)) { ready_.reserve(size()); }

  /// Calls issue(step, action) for each send, spread and receive that may begin.
  template <typename Issue>
  void begin(Issue&& issue) {
    for (Step step = 0; step < schedule_.actions().size(); ++step) {
      if (schedule_.actions()[step].awaited == 0) ready_.push_back(step);
    }
    proceed(issue);
  }
  /// A message that was issued is done.
  template <typename Issue>
  void done(Step step, Issue&& issue) {
    finish(step);
    proceed(issue);
  }
  bool finished() const { return done_ == schedule_.actions().size(); }
  std::size_t size() const { return schedule_.actions().size(); }
  const Action& action(Step step) const { return schedule_.actions()[step]; }

 private:
  /// Marks a step as done; actions after it may become ready.
  void finish(Step step);
  void perform(const Action& action) const;

  /// In the order in which actions became ready, so that messages of one number leave in the order of the schedule.
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
  std::vector<Step> ready_;  ///< so far; each step once
  std::size_t next_ready_ = 0;
  std::size_t done_ = 0;
};

}  // namespace cluster::collective
