// One turn of the engine, and when the next turn is due. A turn takes in what has arrived, continues what
// waited, and sends what is then ready. So the answer to a peer leaves in the turn in which the question
// arrived.
//
// The loop asks all transports the same, nearest first (transport/transport.h). Each transport decides how
// rarely it makes its expensive checks. The loop knows only the fast lane by name: a calm turn reads only the
// rings of peers whose short messages may take it (shm/fast_lane.h).
//
// Before a thread sleeps, arm() makes sure that the waiter wakes it (waiter.h). Call wake_sleepers() after
// everything that may concern a sleeping thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "engine/engine_parts.h"
#include "engine/group_table.h"
#include "engine/transports.h"
#include "protocol/messenger.h"
#include "transport/transport_context.h"

namespace cluster::engine {

class EventLoop {
 public:
  EventLoop(const EngineParts& parts, const transport::TransportContext& context,
            const Transports& transports)
      : parts_(parts),
        peers_(context.peers),
        messenger_(context.messenger),
        waiter_(context.waiter),
        reach_(context.reach),
        lane_(transports.lane),
        groups_(parts, context) {}
  GroupTable& groups() { return groups_; }

  /// Takes one turn. Returns true if something arrived.
  [[gnu::noinline]] bool run_once(PollScope scope = PollScope::all);
  /// Takes a cheaper turn for a caller that comes again soon. It also settles posted writes. Such a turn is
  /// possible while the last full turn left no work, and only short messages and writes of this node can have
  /// come since. Returns false if no turn was taken and run_once() is due. Arrivals go into `read` if it
  /// accepts them.
  template <typename Read>
  bool run_calm(Read& read);
  /// The common part of send, write, read, atomic and collectives. It closes the peer's fast lane, finds the
  /// peer, and opens its carrier. The operation leaves at once, or (`more`) with those that follow.
  template <typename Act>
  Status post(std::uint64_t handle, bool more, Act&& act);
  /// Work was done outside of turns, and the next turn must continue it.
  void disturb() { calm_turns_ = 0; }
  /// The number of turns so far; also read outside the engine lock.
  std::uint32_t turns() const { return turns_.load(std::memory_order_relaxed); }
  /// A receive waits for a peer that is not met: a turn has to call it some time.
  void await_contact() { contact_awaited_ = true; }
  /// A receive was posted: messages that wait for space in the unexpected store may find it now.
  void receive_posted() {
    if (holding()) [[unlikely]]
      deliver_held();
    if (messenger_.control().pending()) flush_control();
  }
  /// True once this endpoint owes nothing to any peer: all that was promised has left, and all that came is
  /// acknowledged.
  bool quiescent() const {
    return !messenger_.busy() && groups_.quiescent() &&
           all_of([](const transport::Transport& each) { return each.quiescent(transport::Towards::all); });
  }
  /// Runs turns until quiescent(), at most for the `linger` setting. Peers outside the address vector get
  /// less time.
  void drain_on_close();

  /// Returns when the endpoint needs a turn if nothing arrives and nobody calls; kNever: never.
  Time next_deadline() const;
  /// True if more turns soon would complete something.
  bool wants_turns() const {
    return !messenger_.idle_but_for_accesses() ||
           !all_of([](const transport::Transport& each) { return !each.wants_turn(); });
  }
  int descriptor() { return waiter_.open() ? waiter_.descriptor() : -1; }
  /// Takes one turn, after which a thread may sleep on the descriptor. Returns false if something arrived or
  /// sleeping is impossible.
  bool arm();
  void handle_events();
  void wake_sleepers() {
    if (waiter_.may_sleep()) [[unlikely]]
      wake_by_deadline();
  }

 private:
  static constexpr std::uint32_t kTurnsPerQuietRings = 1 << 2;  ///< if some rings are read in turns
  static constexpr Duration kReviewInterval = 250ms;

  /// Takes a turn that is due by the clock and not because of a message. The test of the budget of messages
  /// knows it by this name and ignores it.
  [[gnu::noinline]] bool run_by_clock();
  bool take_turn(PollScope scope);
  void read_clock(transport::Turn& turn);
  void review_waiting(Time now);
  std::span<transport::Transport* const> transports() const { return reach_.transports(); }
  template <typename Holds>
  bool all_of(Holds&& holds) const {
    return std::ranges::all_of(transports(), [&](const transport::Transport* each) { return holds(*each); });
  }
  /// Messages that have arrived wait for a receive, or for space in the unexpected store.
  bool holding() const {
    return groups_.holding() || !all_of([](const transport::Transport& each) { return !each.holding(); });
  }
  /// True if only posted writes are left to settle, and calm turns miss nothing else.
  bool calm() const;
  void mark_control();
  void flush_control();
  void deliver_held();
  void wake_by_deadline();
  /// When a thread that sleeps wakes by the clock.
  Time next_turn() const;

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  transport::Waiter& waiter_;
  transport::PeerReach& reach_;
  shm::ShmTransport* const lane_;  ///< null: the endpoint has no fast lane
  GroupTable groups_;
  std::atomic<std::uint32_t> turns_{0};  ///< written under the engine lock
  /// Not 0: the last turn left no work, and nothing was done since. Turns whose number has one of these bits
  /// may be calm.
  std::uint32_t calm_turns_ = 0;
  bool ended_early_ = false;         ///< the last turn, for lack of memory
  bool contact_awaited_ = false;     ///< receives wait for peers that are not met
  Time next_review_{};               ///< of what waits, while an operation is in progress
  std::uint64_t clock_read_at_ = 0;  ///< when a turn without the network read the clock, in ticks
  std::uint64_t ticks_ = 0;          ///< the last reading of the clock...
  std::uint64_t rest_ = 0;  ///< ...and for how many ticks a calm loop need not look at all transports again
};

template <typename Act>
Status EventLoop::post(std::uint64_t handle, bool more, Act&& act) {
  Peer* const peer = peers_.by_handle(handle);
  if (peer == nullptr) return Status::bad_address;
  shm::FastLane::close(*peer);
  disturb();
  if (peer->channel.carrier == nullptr) [[unlikely]] {
    const transport::OpenResult opening = reach_.open(*peer);
    if (opening == transport::OpenResult::later) return Status::again;
    if (opening == transport::OpenResult::unreached) {
      if (peer->lost() == nullptr) return Status::unreachable;
      const Status status = reach_.fail_at_once(*peer, act);
      flush_control();
      wake_sleepers();
      return status;
    }
  }
  const Status status = act(peer->channel);
  if (transport::Transport* const transport = peer->transport()) transport->posted(*peer, more);
  wake_sleepers();
  return status;
}

template <typename Read>
bool EventLoop::run_calm(Read& read) {
  const std::uint32_t turn = turns() + 1;
  if ((turn & calm_turns_) == 0) return false;
  using Arrivals = shm::LocalPeers::Arrivals;
  const Arrivals arrivals = lane_->peers().receive_short(read);
  if (arrivals == Arrivals::other) return false;
  lane_->settle_posted();
  if (arrivals == Arrivals::none) {
    // Posted writes need the clock as well: settling takes back writes that a target does not read.
    const bool posted = !lane_->posted_idle();
    const std::uint64_t rest = posted ? transport::Transport::kTicksPerLook : rest_;
    if (parts_.environment.clock.ticks() - ticks_ > rest) return run_by_clock();
  }
  turns_.store(turn, std::memory_order_relaxed);
  return true;
}

}  // namespace cluster::engine
