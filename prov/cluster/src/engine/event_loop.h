// One turn of the engine, and when the next one is due. A turn takes in what has arrived, goes on with what
// waited, and sends what that made ready, so a peer's answer leaves in the turn in which its question came.
//
// What costs a system call (the network of an endpoint that has found it silent, connections, deaths of local
// peers) is looked at once in so many ticks, and however busy the loop is once in so many turns. A turn of
// scope `due` that took in something from this node does not even read the clock for that: it polls a network
// that is not silent, and leaves out the rest.
//
// Before a thread sleeps, arm() makes sure that the waiter wakes it (waiter.h). wake_sleepers() comes after
// everything that may concern a thread asleep.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/carrier_selector.h"
#include "engine/engine_parts.h"
#include "engine/group_table.h"
#include "engine/local_deaths.h"
#include "engine/local_peers.h"
#include "engine/lost_peers.h"
#include "engine/member_hosts.h"
#include "engine/network_receiver.h"
#include "engine/peer_table.h"
#include "engine/session_table.h"
#include "engine/tx_scheduler.h"
#include "engine/waiter.h"
#include "protocol/messenger.h"

namespace cluster::engine {

class EventLoop {
 public:
  EventLoop(const EngineParts& parts, PeerTable& peers, protocol::Messenger& messenger, Waiter& waiter,
            TxScheduler& tx, LocalPeers& local, SessionTable& sessions,
            LostPeers& lost, NetworkReceiver& network)
      : parts_(parts),
        peers_(peers),
        messenger_(messenger),
        waiter_(waiter),
        tx_(tx),
        local_(local),
        deaths_(peers, local, waiter),
        sessions_(sessions),
        lost_(lost),
        network_(network),
        hosts_(parts.probe.get()),
        groups_(parts, peers, messenger, tx, lost, waiter) {}
  GroupTable& groups() { return groups_; }

  /// One turn; true if something came in.
  [[gnu::noinline]] bool run_once(PollScope scope = PollScope::all);
  /// The same, for a caller that comes again soon, when at most short messages and writes of this node can have
  /// come since a turn that left nothing to do; it also settles posted writes. False: no turn was taken,
  /// run_once() is due. Arrivals go into `read` where it accepts them.
  template <typename Read>
  bool run_calm(Read& read);
  /// What send, write, read, atomic and collectives have in common: the peer, its carrier, and that the operation
  /// leaves at once, or with those that follow. The fast lane is closed meanwhile.
  template <typename Act>
  Status post(std::uint64_t handle, bool more, Act&& act);
  /// Something was done outside of turns that the next one has to go on with.
  void disturb() { last_turn_.calm_turns = 0; }
  /// How many there have been; also read outside the engine lock.
  std::uint32_t turns() const { return turns_.load(std::memory_order_relaxed); }
  /// A receive was posted: messages that wait for space in the unexpected store may find it now.
  void receive_posted() {
    if (network_.holding() || local_.holding() || groups_.holding()) [[unlikely]]
      deliver_held();
    if (messenger_.control().pending()) tx_.transmit_control(parts_.environment.clock.now());
  }
  /// True once nothing is owed to any peer: all that was promised has left, all that came was acknowledged.
  bool quiescent() const { return !messenger_.busy() && tx_.quiescent(TxScheduler::Towards::all) && groups_.quiescent(); }
  /// When something is to be done for the network; kNever: not by time.
  Time next_timer() const { return std::min(tx_.next_timer(), groups_.deadline()); }
  /// Runs turns until then, at most for the `linger` setting, and a shorter time for peers outside the address vector.
  void drain_on_close();

  /// When it next wants a turn though nothing arrives and no call is made; kNever: not at all.
  Time next_deadline() const;
  int descriptor() { return waiter_.open(peers_) ? waiter_.descriptor() : -1; }
  /// One turn, after which a thread may sleep on the descriptor. False if something came in, or sleeping is
  /// impossible.
  bool arm();
  /// Takes the events out of the descriptor.
  void handle_events();
  void wake_sleepers() {
    if (waiter_.may_sleep()) [[unlikely]]
      wake_by_deadline();
  }

 private:
  static constexpr std::uint64_t kTicksPerPoll = 1 << 13;  ///< 2 to 8 us (Clock::ticks)
  /// The same without any peer over the network: 0.7 to 2 ms. Only a first contact waits so long, and only where turns
  /// are few, as in a rank that shares its processor with many others.
  static constexpr std::uint64_t kTicksPerPollAlone = 1 << 21;
  static constexpr std::uint32_t kTurnsPerPoll = 1 << 8;
  static constexpr std::uint32_t kTurnsPerQuietRings = 1 << 2;  ///< where some rings are read in turns

  /// What is due by the clock, not because of a message: the budget of messages leaves it out by this name.
  [[gnu::noinline]] bool run_by_clock();
  bool take_turn(PollScope scope);
  void check_local_peers(std::uint64_t ticks);
  bool network_silent() const;
  /// Posted writes wait for the clock as well: PostedWrites::settle takes back what a target does not read.
  std::uint64_t ticks_per_poll() const {
    return tx_.flows().empty() && messenger_.rma().posted().idle() ? kTicksPerPollAlone : kTicksPerPoll;
  }
  bool network_due(std::uint64_t ticks, std::uint32_t turn) const;
  bool poll_network();
  /// Something that has come, or is to leave, waits for memory.
  bool awaits_memory() const {
    return last_turn_.ended_early || local_.holding() || network_.holding() || groups_.holding() || tx_.tx_pending();
  }
  void deliver_held();
  void wake_by_deadline();

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  Waiter& waiter_;
  TxScheduler& tx_;
  LocalPeers& local_;
  LocalDeaths deaths_;
  SessionTable& sessions_;
  LostPeers& lost_;
  NetworkReceiver& network_;
  MemberHosts hosts_;
  GroupTable groups_;
  std::atomic<std::uint32_t> turns_{0};  ///< written under the engine lock
  struct {
    /// It left nothing to do but to settle posted writes, and nothing has disturbed it since: turns whose number has one
    /// of these bits may be calm.
    std::uint32_t calm_turns = 0;
    bool ended_early = false;  ///< for want of memory
  } last_turn_;
  /// When each of these happened last, in ticks.
  struct {
    std::uint64_t network_poll = 0;
    std::uint64_t local_check = 0;
  } last_;
};

template <typename Act>
Status EventLoop::post(std::uint64_t handle, bool more, Act&& act) {
  Peer* const peer = peers_.by_handle(handle);
  if (peer == nullptr) return Status::bad_address;
  FastLane::close(*peer);
  disturb();
  const Reach reach = peer->channel.carrier != nullptr ? Reach::reached : lost_.reach(*peer);
  if (reach == Reach::later) return Status::again;
  if (reach == Reach::unreached) {
    if (peer->absence.lost == Status::ok) return Status::unreachable;
    const Status status = lost_.fail_at_once(*peer, act);
    tx_.transmit_control(parts_.environment.clock.now());
    wake_sleepers();
    return status;
  }
  const Status status = act(peer->channel);
  if (peer->flow != nullptr) tx_.posted(*peer, more);
  if (peer->outbox != nullptr) local_.lane().review(*peer);
  wake_sleepers();
  return status;
}

template <typename Read>
bool EventLoop::run_calm(Read& read) {
  const std::uint32_t turn = turns() + 1;
  if ((turn & last_turn_.calm_turns) == 0) return false;
  const LocalPeers::Arrivals arrivals = local_.receive_short(read);
  if (arrivals == LocalPeers::Arrivals::other) return false;
  if (!messenger_.rma().posted().idle()) messenger_.rma().posted().settle(std::nullopt);
  if (arrivals == LocalPeers::Arrivals::none &&
      parts_.environment.clock.ticks() - last_.network_poll > ticks_per_poll()) {
    return run_by_clock();
  }
  turns_.store(turn, std::memory_order_relaxed);
  return true;
}

}  // namespace cluster::engine
