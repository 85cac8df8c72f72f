// Takes the turns of an engine, and computes when the next turn is due. A turn receives what has arrived,
// continues operations that had to wait, and then sends what is ready. So the answer to a peer leaves in the
// same turn in which the question arrived.
//
// The loop calls the same methods of all transports, nearest first (transport/transport.h). Each transport
// decides how rarely it makes its expensive checks. There are two special kinds of turns. A calm turn reads
// only the rings of peers on this node, for the fast lane (shm/fast_lane.h). A short turn reads only the
// network, for the frame lanes (reliability/frame_lane.h). Everything else waits for a full turn.
//
// Before a thread sleeps, arm() makes sure that the waiter wakes the thread (waiter.h). Call wake_sleepers()
// after every change for which a sleeping thread must take a turn.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/end_of_memory.h"
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
        network_(transports.network),
        groups_(parts, context) {}
  GroupTable& groups() { return groups_; }

  /// Takes one turn. Returns true if something arrived.
  [[gnu::noinline]] bool run_once(PollScope scope = PollScope::all);
  /// Takes a calm turn for a caller that calls again soon. A calm turn is cheaper than a full turn. It
  /// receives short messages from this node and settles posted writes. It is possible only if the last full
  /// turn has left no work, and if only short messages and writes from this node can have arrived since.
  /// Returns false if it could not take the turn; another kind of turn must then follow. Arriving messages
  /// are written to `read` if `read` accepts them.
  template <typename Read>
  bool run_calm(Read& read);
  /// Takes a short turn for a caller that calls again soon. It only takes messages that arrive on the frame
  /// lane (reliability/frame_lane.h). It is possible only if the last full turn has left no other work, and
  /// no peer of this node uses a ring. Returns false if a full turn must follow.
  template <typename Read>
  [[gnu::noinline]] bool run_short(Read& read);
  /// The common part of send, write, read, atomic and collective operations. It finds the peer, closes the
  /// peer's fast lane, and opens a carrier if the peer has none. Then it calls act(channel), which starts the
  /// operation. The transport decides whether the operation leaves at once, or together with operations that
  /// follow. `more`: true if the application has announced such operations.
  template <typename Act>
  Status post(std::uint64_t handle, bool more, Act&& act);
  /// Sends a message to a peer or to a group.
  Status send(const protocol::SendOp& op);
  /// Makes the next turn a full turn. Called after an action outside of turns, because that action may leave
  /// work for the turn.
  void disturb() { calm_turns_ = short_turns_ = 0; }
  /// Called after a message has left over a frame lane. The next turns are not calm, so that they read the
  /// answer from the network.
  void expect_answer() { calm_turns_ = 0; }
  /// Returns the number of turns so far. May be called without the engine lock.
  std::uint32_t turns() const { return turns_.load(std::memory_order_relaxed); }
  /// Called when a receive waits for a peer without a carrier. A later turn contacts that peer.
  void await_contact() { contact_awaited_ = true; }
  /// Called after a receive was posted. Messages that wait for space in the unexpected store may be
  /// deliverable now.
  void receive_posted() {
    if (holding()) [[unlikely]]
      deliver_held();
    if (messenger_.control().pending()) flush_control();
  }
  /// Called after an action outside of turns that may have posted control segments to peers.
  void answer_now() {
    disturb();
    flush_control();
    wake_sleepers();
  }
  /// Returns true if this endpoint owes nothing to any peer: all posted data has left, and everything that
  /// has arrived is acknowledged.
  bool quiescent() const {
    return !messenger_.busy() && groups_.quiescent() &&
           all_of([](const transport::Transport& each) { return each.quiescent(transport::Towards::all); });
  }
  /// Takes turns until quiescent() is true, but not longer than the `linger` setting. For peers outside the
  /// address vector, the function waits for a shorter time.
  void drain_on_close();

  /// Returns the time at which the endpoint needs a turn even if nothing arrives and nobody calls it. Returns
  /// kNever if it needs none.
  Time next_deadline() const;
  /// Returns true if turns in the near future could complete an operation.
  bool wants_turns() const {
    return !messenger_.idle_but_for_accesses() ||
           !all_of([](const transport::Transport& each) { return !each.wants_turn(); });
  }
  int descriptor() { return waiter_.open() ? waiter_.descriptor() : -1; }
  /// Takes one turn. Returns true if a thread may now sleep on the descriptor. Returns false if something has
  /// arrived or sleeping is impossible.
  bool arm();
  void handle_events();
  void wake_sleepers() {
    if (waiter_.may_sleep()) [[unlikely]]
      wake_by_deadline();
  }

 private:
  static constexpr std::uint32_t kTurnsPerQuietRings =
      1 << 2;  ///< if calm turns read only some rings, one turn in this many is a full turn
  static constexpr Duration kReviewInterval = 250ms;

  /// Takes a full turn because of the time, not because of a message. It is a function of its own so that the
  /// test of the instruction budget can recognize it by name and leave it out.
  [[gnu::noinline]] bool run_by_clock();
  bool take_turn(PollScope scope);
  void read_clock(transport::Turn& turn);
  void review_waiting(Time now);
  std::span<transport::Transport* const> transports() const { return reach_.transports(); }
  template <typename Holds>
  bool all_of(Holds&& holds) const {
    return std::ranges::all_of(transports(), [&](const transport::Transport* each) { return holds(*each); });
  }
  /// Returns true if arrived messages wait for a matching receive or for space in the unexpected store.
  bool holding() const {
    return groups_.holding() || !all_of([](const transport::Transport& each) { return !each.holding(); });
  }
  /// Returns true if the next turns may be calm: the only work left is to settle posted writes, and no
  /// transport needs a system call soon.
  bool calm() const;
  /// Returns true if the next turns may be short.
  bool few_sources() const;
  void mark_control();
  void flush_control();
  void deliver_held();
  void wake_by_deadline();
  /// Returns the time at which a sleeping thread must wake even if nothing arrives.
  Time next_turn() const;

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  transport::Waiter& waiter_;
  transport::PeerReach& reach_;
  shm::ShmTransport* const lane_;             ///< null if the endpoint has no fast lane
  network::NetworkTransport* const network_;  ///< null if the endpoint has no frame lanes
  GroupTable groups_;
  std::atomic<std::uint32_t> turns_{0};  ///< written under the engine lock
  /// A mask of turn numbers. It is not 0 if the last full turn has left no work and nothing was done since.
  /// In this case a turn may be calm if its number has at least one of these bits.
  std::uint32_t calm_turns_ = 0;
  std::uint32_t short_turns_ = 0;    ///< like `calm_turns_`, for short turns
  bool ended_early_ = false;         ///< the last turn ended early because memory ran out
  bool contact_awaited_ = false;     ///< receives wait for peers without a carrier
  Time next_review_{};               ///< when to call review_waiting() again
  std::uint64_t clock_read_at_ = 0;  ///< the tick count when read_clock() last read the clock
  std::uint64_t ticks_ = 0;          ///< the tick count at the last full turn that read it
  std::uint64_t rest_ = 0;           ///< for how many ticks after `ticks_` calm turns may replace full turns
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

inline Status EventLoop::send(const protocol::SendOp& op) {
  if (is_group(op.to)) [[unlikely]] {
    const Status status = groups_.send(op);
    wake_sleepers();
    return status;
  }
  return post(op.to, op.more, [&](protocol::Channel& channel) { return messenger_.send(channel, op); });
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
    // As long as posted writes are pending, full turns are needed more often, because a full turn takes back
    // writes that a target does not read.
    const bool posted = !lane_->posted_idle();
    const std::uint64_t rest = posted ? transport::Transport::kTicksPerLook : rest_;
    if (parts_.environment.clock.ticks() - ticks_ > rest) return run_by_clock();
  }
  turns_.store(turn, std::memory_order_relaxed);
  return true;
}

template <typename Read>
bool EventLoop::run_short(Read& read) {
  const std::uint32_t turn = turns() + 1;
  if ((turn & short_turns_) == 0 || waiter_.may_sleep()) return false;
  protocol::DirectSuccesses direct(read.queue(), read.places());
  bool over = false;
  const auto receive = [&] { over = network_->receive_short(direct); };
  if (!enough_memory_for(receive)) over = false;
  for (const protocol::Success& success : direct.all()) read.take(success);
  if (over) turns_.store(turn, std::memory_order_relaxed);
  return over;
}

}  // namespace cluster::engine
