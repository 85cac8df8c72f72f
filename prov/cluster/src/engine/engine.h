// The engine of one endpoint. All calls from outside go through this class: each method takes the engine lock
// and calls the objects below. These objects take no lock, and each knows only the objects declared before
// it. A few values are read without the lock, for example to see whether the application polls
// (run_in_background()).
//
//   down   send() -> Messenger -> the peer's carrier -> the peer's transport
//   up     poll() -> EventLoop -> every transport -> Messenger -> completion queues
//
//   PeerTable           peers by name and handle      PeerReach           how a peer is reached; losses
//   AdmissionControl    limits on unknown sources     Waiter              how threads sleep and wake
//   Transports          the ways to reach peers       EventLoop           one turn; when the next is due
//   GroupTable          multicast groups              BackgroundRunner    turns of the progress thread
//   CollectiveEndpoint  collective operations         ConnectionEndpoint  one end of an FI_EP_MSG connection
//
// The engine makes progress in poll() and try_poll(). api/ calls these whenever the application reads a queue
// or a counter, or waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "base/lock.h"
#include "base/outage.h"
#include "base/status.h"
#include "engine/background_runner.h"
#include "engine/collective_endpoint.h"
#include "engine/connection_endpoint.h"
#include "engine/endpoint_stats.h"
#include "engine/engine_parts.h"
#include "engine/event_loop.h"
#include "engine/group_table.h"
#include "engine/transports.h"
#include "os/progress_thread.h"
#include "protocol/completion.h"
#include "protocol/messenger.h"
#include "protocol/ops.h"
#include "shm/access_lane.h"
#include "shm/shm_transport.h"
#include "transport/transport_context.h"

namespace cluster::engine {

using protocol::ShortSend;
using transport::AddressTable;

class Engine {
 public:
  explicit Engine(EngineParts parts);
  /// Waits until all messages have left and are acknowledged, but not longer than the `linger` setting.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const SocketAddress& name() const { return parts_.name; }
  /// Call attach() before the first send or receive, and again for each counter that is bound later. The
  /// address table and the table of regions must outlive the engine.
  void attach(const AddressTable& addresses, const protocol::EndpointBindings& bindings);

  /// Returns `ok` if the operation is accepted; its completion later goes to the bindings. Returns `again` if
  /// there are no resources now; the caller must poll and call again. Any other status means that the
  /// operation is refused and no completion follows.
  Status send(const protocol::SendOp& op);
  Status receive(const protocol::RecvOp& op);
  /// Performs a ShortSend to the peer if the peer's fast lane is open, or posts a ShortReceive from the peer.
  /// The `handle` of a ShortReceive may also be kAddrUnspec (any sender). Returns false if it did nothing;
  /// the caller then calls send() or receive().
  template <typename ShortOp>
  bool take_fast_lane(std::uint64_t handle, const ShortOp& op) {
    if (!lock_.try_lock()) [[unlikely]]
      return false;
    const std::lock_guard lock(lock_, std::adopt_lock);
    Peer* const peer = peers_.used_before(handle);
    if constexpr (std::is_same_v<ShortOp, ShortSend>) {
      return peer != nullptr && lane_->send(*peer, op);
    } else {
      if (peer == nullptr) return handle == protocol::kAddrUnspec && lane_->post(nullptr, op);
      return lane_->post(&peer->channel, op);
    }
  }
  /// If the frame lane of the peer is open, sends the message to the peer, which is on another node. Returns
  /// false if it did nothing. This function is not part of take_fast_lane(), because there it would add a
  /// fifth to the instructions of messages inside a node.
  bool take_frame_lane(std::uint64_t handle, const ShortSend& op);
  /// Returns false if a call of take_access_lane() is not worth its cost now.
  bool tries_access_lane() const { return access_lane_.promising(); }
  /// If the access lane of the peer is open, performs a ShortWrite or ShortRead. Returns false if it did
  /// nothing; the caller then calls write() or read().
  template <typename ShortAccess>
  bool take_access_lane(std::uint64_t handle, const ShortAccess& op) {
    if (!lock_.try_lock()) [[unlikely]]
      return false;
    const std::lock_guard lock(lock_, std::adopt_lock);
    Peer* const peer = peers_.used_before(handle);
    return peer != nullptr && access_lane_.access(*peer, op);
  }
  Status write(const protocol::WriteOp& op);
  Status read(const protocol::ReadOp& op);
  /// Performs the write or read of deferred work, which never takes a shorter path.
  template <typename Op>
  Status access_deferred(const Op& op) {
    const std::lock_guard lock(lock_);
    return loop_.post(op.to, op.more,
                      [&](protocol::Channel& channel) { return messenger_.rma().request(channel, op); });
  }
  Status atomic(const protocol::AtomicRmaOp& op);
  /// Joins a group and sets `handle` to the handle of the group. If `op` is null, leaves the group with this
  /// handle.
  Status change_membership(const JoinOp* op, std::uint64_t& handle);
  /// Calls act(collectives), where `collectives` are the teams and collective operations of this endpoint.
  template <typename Act>
  auto with_collectives(Act&& act) {
    return locked([&] { return act(collective_.collectives()); });
  }
  /// Makes this the engine of one end of a connection, or of a passive endpoint. Call open_connection()
  /// before attach(), and pass connection_addresses() to attach().
  template <typename Listener>
  void open_connection(Listener& listener) {
    connection_.emplace(parts_.name, peers_, messenger_, loop_, reach_);
    connection_->open(listener);
  }
  const AddressTable& connection_addresses() const { return connection_->addresses(); }
  /// Calls act(end), where `end` is the ConnectionEndpoint.
  template <typename Act>
  auto with_connection(Act&& act) {
    return locked([&] { return act(*connection_); });
  }
  /// Offers the endpoint's stored messages to a receive that has just been added to its shared receives.
  /// Returns true if the receive no longer waits.
  bool take_shared(const protocol::SharedReceives::Receive& wanted);
  /// Cancels one receive that has this context. Returns false if no such receive waits.
  bool cancel(void* context) {
    return locked([&] { return messenger_.matcher().cancel(context); });
  }

  /// Stores the handle that keeps run_in_background() registered with the progress thread. The engine drops
  /// this handle before the engine itself ends.
  void set_progress_client(std::shared_ptr<void> registration) {
    background_.set_registration(std::move(registration));
  }
  /// Sets `call`, a function that makes the progress thread call run_in_background() at once.
  void set_progress_call(std::function<void()> call) {
    locked([&] { packing_.set_call(std::move(call)); });
  }
  /// Called by the progress thread, which never waits for the engine lock. Takes a turn if no thread has
  /// polled since the last run. Returns when to call again.
  os::NextWake run_in_background();
  /// Switches to FI_PROGRESS_AUTO: peers are served at once, even if the application does not poll. Call
  /// enable_auto_progress() before attach().
  void enable_auto_progress() {
    locked([&] { background_.set_automatic(); });
  }

  /// Returns the time at which the endpoint needs a turn even if nothing arrives and nobody calls it. Returns
  /// kNever if it needs none.
  Time next_deadline() const {
    return locked([&] { return loop_.next_deadline(); });
  }
  Counters counters() const {
    return locked([&] { return Counters(parts_.environment.counters); });
  }
  /// Returns how many more operations the engine will certainly accept (fi_tx_size_left).
  std::size_t tx_size_left() const {
    return locked([&] { return messenger_.tx_size_left(); });
  }
  std::size_t unexpected_messages() const {
    return locked([&] { return messenger_.matcher().stored(); });
  }
  /// Returns how the peer is reached: the name of a link, "shm", "self", or "none" if it has no carrier.
  /// Returns null if the handle is not in the address vector.
  const char* carrier_name_of(std::uint64_t handle) const;
  /// Called by the progress thread. Returns the state for reports, or nothing if another thread holds the
  /// engine lock.
  std::optional<EndpointStats> stats() const;
  /// Returns true if this endpoint owes nothing to any peer: all posted data has left, and everything that
  /// has arrived is acknowledged.
  bool quiescent() const {
    return locked([&] { return loop_.quiescent(); });
  }

  /// Waits for the engine lock, and takes a turn that checks every source of work (PollScope::all).
  void poll() {
    locked([&] { loop_.run_once(PollScope::all); });
    finish_turn(true);
  }
  /// Returns true if another thread holds the engine lock at this moment.
  bool busy() const {
    const std::unique_lock lock(lock_, std::try_to_lock);
    return !lock.owns_lock();
  }
  /// Takes a turn for a caller that calls again soon. Does nothing if another thread holds the engine lock.
  /// Omits system calls that were made only a short time ago (PollScope::due). Messages that arrive by the
  /// fast lane are written to `read` if `read` accepts them.
  template <typename Read = protocol::NoDirectRead>
  void try_poll(Read&& read = Read()) {
    if (!lock_.try_lock()) [[unlikely]]
      return;
    {
      const std::lock_guard lock(lock_, std::adopt_lock);
      if (loop_.run_calm(read) || loop_.run_short(read)) return;
      loop_.run_once(PollScope::due);
    }
    finish_turn(true);
  }
  /// Returns a descriptor, or -1 if there is none. After arm() has returned true, the descriptor becomes
  /// readable as soon as poll() has work.
  int descriptor() {
    return locked([&] { return loop_.descriptor(); });
  }
  /// Takes one turn. Returns true if a thread may now sleep on the descriptor. Returns false if something has
  /// arrived or sleeping is impossible; the caller must keep polling.
  bool arm();

 private:
  /// Ends what the devices of this engine do with regions that are closed.
  class Holder final : public protocol::RegionHolder {
   public:
    explicit Holder(Engine& engine) : engine_(engine) {}
    void region_closed(std::uint64_t number) override;

   private:
    Engine& engine_;
  };

  /// Called without the lock after each full turn.
  void finish_turn(bool may_wait) {
    AfterTurn* const after = after_turn_.load(std::memory_order_relaxed);
    if (after != nullptr && after->due()) [[unlikely]]
      after->run(may_wait);
  }
  template <typename Act>
  std::invoke_result_t<Act> locked(Act&& act) const {
    const std::lock_guard lock(lock_);
    return act();
  }

  mutable BiasedLock lock_;
  /// Holds the counters. It is declared before the members that count events, because these members still
  /// count while they are destroyed.
  const std::shared_ptr<void> resources_;
  EngineParts parts_;
  mutable PeerTable peers_;
  protocol::Messenger messenger_;
  transport::Waiter waiter_;
  transport::PackingPolicy packing_;
  transport::AdmissionControl admission_;
  transport::PeerReach reach_;
  Outage outage_;
  transport::TransportContext context_;
  shm::FastLane no_lane_;  ///< takes the place of the fast lane if there is no shared memory; never open
  shm::AccessLane access_lane_;
  Transports transports_;
  shm::FastLane* const lane_;
  network::NetworkTransport* const network_;  ///< null if there is no network
  EventLoop loop_;
  CollectiveEndpoint collective_;
  std::optional<ConnectionEndpoint> connection_;  ///< no value for an endpoint without connections
  BackgroundRunner background_;
  const Time started_;
  std::atomic<AfterTurn*> after_turn_{nullptr};
  Holder holder_{*this};
  protocol::RegionTable* held_in_ = nullptr;  ///< the table that knows `holder_`
};

}  // namespace cluster::engine
