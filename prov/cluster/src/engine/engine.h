// One endpoint, entered only here: each method takes the engine lock and calls the objects behind it. These
// objects are single-threaded, know only objects declared before them, and take no lock. Only the progress
// thread reads without the lock, and only what run_in_background() needs to see whether the application
// polls.
//
//   down   send() -> Messenger -> the carrier of the peer -> its transport
//   up     poll() -> EventLoop -> every transport -> Messenger -> completion queues
//
//   PeerTable         peers by name and handle          PeerReach         how a peer is reached; losses
//   AdmissionControl  limits on unknown sources         Waiter            descriptors, alarm: how it sleeps
//   Transports        the ways to reach peers           EventLoop         one turn; when the next is due
//   GroupTable        multicast groups                  BackgroundRunner  turns of the progress thread
//   CollectiveEndpoint  collective operations
//
// Progress happens in poll() and try_poll(), which api/ calls from whatever reads or waits.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "base/lock.h"
#include "base/status.h"
#include "engine/background_runner.h"
#include "engine/collective_endpoint.h"
#include "engine/endpoint_stats.h"
#include "engine/engine_parts.h"
#include "engine/event_loop.h"
#include "engine/group_table.h"
#include "engine/transports.h"
#include "os/progress_thread.h"
#include "protocol/completion.h"
#include "protocol/messenger.h"
#include "protocol/ops.h"
#include "shm/shm_transport.h"
#include "transport/transport_context.h"

namespace cluster::engine {

using shm::ShortSend;
using transport::AddressTable;

class Engine {
 public:
  explicit Engine(EngineParts parts);
  /// Waits until peers have what they are owed, at most for the `linger` setting.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const SocketAddress& name() const { return parts_.name; }
  /// Call it before the first send or receive, and again for each counter bound later. The address table
  /// outlives the engine.
  void attach(const AddressTable& addresses, const protocol::EndpointBindings& bindings);

  /// Returns `ok` if the operation is accepted: its outcome goes to the bindings. Returns `again` if
  /// resources are missing now: poll and repeat. Any other status refuses the operation, and no outcome
  /// follows.
  Status send(const protocol::SendOp& op);
  Status receive(const protocol::RecvOp& op);
  /// Does a ShortSend to the peer, or a ShortReceive from it (or kAddrUnspec), if the fast lane to it is
  /// open. Returns false if nothing was done: call send() or receive().
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
  Status write(const protocol::WriteOp& op);
  Status read(const protocol::ReadOp& op);
  Status atomic(const protocol::AtomicRmaOp& op);
  /// Joins a group and returns its address in `handle`. With `op` null, leaves the group `handle`.
  Status change_membership(const JoinOp* op, std::uint64_t& handle);
  /// Calls act(collectives) with the teams and collective operations of this endpoint.
  template <typename Act>
  auto with_collectives(Act&& act) {
    return locked([&] { return act(collective_.collectives()); });
  }
  /// Cancels one receive by its context. Returns false if no such receive waits.
  bool cancel(void* context) {
    return locked([&] { return messenger_.matcher().cancel(context); });
  }

  /// Stores the registration of run_in_background() with the progress thread. It ends before the engine does.
  void set_progress_client(std::shared_ptr<void> registration) {
    background_.set_registration(std::move(registration));
  }
  /// For the progress thread, which never waits for the lock: takes a turn if no thread has polled since its
  /// last run. Returns when to come again.
  os::NextWake run_in_background();
  /// FI_PROGRESS_AUTO: peers are served at once, even if the application does not poll. Call before attach().
  void enable_auto_progress() {
    locked([&] { background_.set_automatic(); });
  }

  /// Returns when the endpoint needs a turn if nothing arrives and nobody calls; kNever: never.
  Time next_deadline() const {
    return locked([&] { return loop_.next_deadline(); });
  }
  Counters counters() const {
    return locked([&] { return Counters(parts_.environment.counters); });
  }
  /// Returns how many more operations are certainly accepted (fi_tx_size_left).
  std::size_t tx_size_left() const {
    return locked([&] { return messenger_.tx_size_left(); });
  }
  std::size_t unexpected_messages() const {
    return locked([&] { return messenger_.matcher().stored(); });
  }
  /// Returns how the peer is reached: the name of a link, "shm", "self", or "none" (yet). Returns null if the
  /// handle is not in the address vector.
  const char* carrier_name_of(std::uint64_t handle) const;
  /// Returns the state for reports, or nothing if another thread is inside. For the progress thread.
  std::optional<EndpointStats> stats() const;
  /// Returns true once this endpoint owes nothing to any peer: all that was promised has left, and all that
  /// came is acknowledged.
  bool quiescent() const {
    return locked([&] { return loop_.quiescent(); });
  }

  /// Takes one turn of the event loop that looks at everything. Waits for the engine lock.
  void poll() {
    locked([&] { loop_.run_once(PollScope::all); });
  }
  /// Takes a turn for a caller that comes again soon. It skips the turn if another thread is inside, and
  /// makes system calls only when they are due (PollScope::due). Arrivals of the fast lane go into `read` if
  /// it accepts them.
  template <typename Read = protocol::NoDirectRead>
  void try_poll(Read&& read = Read()) {
    if (!lock_.try_lock()) [[unlikely]]
      return;
    const std::lock_guard lock(lock_, std::adopt_lock);
    if (!loop_.run_calm(read)) loop_.run_once(PollScope::due);
  }
  /// Returns a descriptor that becomes readable when poll() has work to do, if arm() has returned true; -1:
  /// there is none.
  int descriptor() {
    return locked([&] { return loop_.descriptor(); });
  }
  /// Takes one turn, after which a thread may sleep on the descriptor. Returns false if something arrived or
  /// sleeping is impossible: then keep polling.
  bool arm();

 private:
  template <typename Act>
  std::invoke_result_t<Act> locked(Act&& act) const {
    const std::lock_guard lock(lock_);
    return act();
  }

  mutable BiasedLock lock_;
  /// Outlives all other members, which count events while they are destroyed.
  const std::shared_ptr<void> resources_;
  EngineParts parts_;
  mutable PeerTable peers_;
  protocol::Messenger messenger_;
  transport::Waiter waiter_;
  transport::PackingPolicy packing_;
  transport::AdmissionControl admission_;
  transport::PeerReach reach_;
  transport::TransportContext context_;
  shm::FastLane no_lane_;  ///< used without shared memory: it is never open
  Transports transports_;
  shm::FastLane* const lane_;
  EventLoop loop_;
  CollectiveEndpoint collective_;
  BackgroundRunner background_;
  const Time started_;
};

}  // namespace cluster::engine
