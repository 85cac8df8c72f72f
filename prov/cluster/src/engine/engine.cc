#include "engine/engine.h"

#include <utility>

namespace cluster::engine {

Engine::Engine(EngineParts parts)
    : lock_(parts.environment.fence),
      resources_(std::move(parts.resources)),
      parts_(std::move(parts)),
      messenger_(parts_.settings, parts_.environment.counters, peers_),
      admission_(parts_.settings, parts_.environment, peers_, messenger_),
      reach_(parts_.environment, parts_.settings, peers_, messenger_),
      context_{parts_.environment, parts_.settings, parts_.name, parts_.epoch,   peers_, messenger_, waiter_,
               admission_,         reach_,          packing_,    *parts_.memory, outage_},
      no_lane_(messenger_, false),
      access_lane_(messenger_),
      transports_(make_transports(parts_, context_)),
      lane_(transports_.lane != nullptr ? &transports_.lane->lane() : &no_lane_),
      network_(transports_.network),
      loop_(parts_, context_, transports_),
      collective_(parts_, peers_, messenger_, loop_),
      background_(loop_, waiter_, packing_, messenger_, parts_.environment.clock,
                  parts_.environment.counters),
      started_(parts_.environment.clock.now()) {}

Engine::~Engine() {
  background_.set_registration(nullptr);
  packing_.set_call(nullptr);
  loop_.drain_on_close();
  reach_.announce_close();
  if (held_in_ == nullptr) return;
  locked([&] { messenger_.end_device_access(0); });
  held_in_->remove(holder_);
}

void Engine::attach(const AddressTable& addresses, const protocol::EndpointBindings& bindings) {
  if (bindings.regions != nullptr && held_in_ == nullptr) {
    bindings.regions->add(holder_);
    held_in_ = bindings.regions;
  }
  const std::lock_guard lock(lock_);
  peers_.attach(addresses);
  protocol::EndpointBindings all = bindings;
  all.engine.groups = &loop_.groups();
  if (connection_) all.shares_with = ConnectionEndpoint::kPeer;
  all.engine.internal =
      connection_ ? static_cast<protocol::InternalListener*>(&*connection_) : &collective_.collectives();
  collective_.collectives().attach(bindings.tx_queue, bindings.joins_teams);
  messenger_.attach(all);
  after_turn_.store(bindings.after_turn, std::memory_order_relaxed);
  lane_->attach();
  if (network_ != nullptr) network_->attach();
  for (const std::unique_ptr<Peer>& peer : peers_.all()) shm::FastLane::close(*peer);
}

void Engine::Holder::region_closed(std::uint64_t number) {
  const std::lock_guard lock(engine_.lock_);
  engine_.messenger_.end_device_access(number);
  engine_.loop_.answer_now();
}

bool Engine::take_frame_lane(std::uint64_t handle, const ShortSend& op) {
  if (network_ == nullptr || !lock_.try_lock()) return false;
  const std::lock_guard lock(lock_, std::adopt_lock);
  Peer* const peer = peers_.used_before(handle);
  if (peer == nullptr || !network_->send_short(*peer, op)) return false;
  loop_.expect_answer();
  return true;
}

Status Engine::send(const protocol::SendOp& op) {
  const std::lock_guard lock(lock_);
  if (transports_.datagrams != nullptr) return transports_.datagrams->datagrams()->send(op);
  return loop_.send(op);
}

Status Engine::change_membership(const JoinOp* op, std::uint64_t& handle) {
  const std::lock_guard lock(lock_);
  loop_.disturb();
  const Status status = op != nullptr ? loop_.groups().join(*op, handle) : loop_.groups().leave(handle);
  loop_.wake_sleepers();
  return status;
}

/// Returns the function that starts a remote write or read. The function is called when the peer has a
/// carrier.
template <typename Op>
auto general_access(transport::PeerReach& reach, protocol::Messenger& messenger, const Op& op) {
  return [&](protocol::Channel& channel) {
    reach.reach_memory(transport::peer_of(channel));
    if constexpr (std::is_same_v<Op, protocol::WriteOp>) {
      return messenger.rma().write(channel, op);
    } else {
      return messenger.rma().read(channel, op);
    }
  };
}

/// A write that write_at_once() or the frame lane takes does not go through EventLoop::post(). post() would
/// make the next turn of the event loop a full turn; without it, the turn may stay calm (event_loop.h).
Status Engine::write(const protocol::WriteOp& op) {
  const std::lock_guard lock(lock_);
  Peer* const used = peers_.used_before(op.to);
  if (used == nullptr || used->lane == nullptr || !messenger_.rma().write_at_once(used->channel, op)) {
    if (used != nullptr && network_ != nullptr && network_->write_short(*used, op)) {
      loop_.expect_answer();
      return Status::ok;
    }
    return loop_.post(op.to, op.more, general_access(reach_, messenger_, op));
  }
  access_lane_.review(*used, op.remote.front().key);
  loop_.wake_sleepers();
  return Status::ok;
}

Status Engine::read(const protocol::ReadOp& op) {
  const std::lock_guard lock(lock_);
  Peer* const used = peers_.used_before(op.to);
  if (used == nullptr || used->lane == nullptr || !messenger_.rma().read_at_once(used->channel, op))
    return loop_.post(op.to, op.more, general_access(reach_, messenger_, op));
  access_lane_.review(*used, op.remote.front().key);
  loop_.wake_sleepers();
  return Status::ok;
}

Status Engine::atomic(const protocol::AtomicRmaOp& op) {
  const std::lock_guard lock(lock_);
  return loop_.post(op.to, op.more,
                    [&](protocol::Channel& channel) { return messenger_.atomic(channel, op); });
}

Status Engine::receive(const protocol::RecvOp& op) {
  const std::lock_guard lock(lock_);
  protocol::Channel* from = nullptr;
  if (op.from != protocol::kAddrUnspec) {
    Peer* const peer = peers_.by_handle(op.from);
    if (peer == nullptr) return Status::bad_address;
    from = &peer->channel;
    if (from->carrier == nullptr) loop_.await_contact();
  }
  // A peek must see all messages that have arrived.
  if (op.peek != protocol::Peek::none) loop_.run_once();
  if (messenger_.matcher().stored() != 0) loop_.disturb();
  const Status status = messenger_.matcher().receive(from, op);
  if (from == nullptr) reach_.end_abandoned();
  loop_.receive_posted();
  loop_.wake_sleepers();
  return status;
}

bool Engine::take_shared(const protocol::SharedReceives::Receive& wanted) {
  const std::lock_guard lock(lock_);
  protocol::Channel* from = nullptr;
  const std::uint64_t sender = connection_ ? ConnectionEndpoint::kPeer : wanted.from;
  if (sender != protocol::kAddrUnspec) {
    Peer* const peer = peers_.by_handle(sender);
    if (peer == nullptr) return false;
    from = &peer->channel;
  }
  if (messenger_.matcher().stored() != 0) loop_.disturb();
  const bool taken = messenger_.matcher().take_shared(from, wanted);
  loop_.receive_posted();
  loop_.wake_sleepers();
  return taken;
}

os::NextWake Engine::run_in_background() {
  if (background_.application_polls()) return background_.next_check();
  os::NextWake next{BackgroundRunner::kIdle};
  {
    const std::unique_lock lock(lock_, std::try_to_lock);
    if (!lock.owns_lock()) return BackgroundRunner::kAway;
    if (peers_.attached()) next = background_.run();
  }
  AfterTurn* const after = after_turn_.load(std::memory_order_relaxed);
  if (after == nullptr || !after->due()) return next;
  after->run(false);
  return BackgroundRunner::kAway;  // because the work may have left something to do for this engine
}

const char* Engine::carrier_name_of(std::uint64_t handle) const {
  const std::lock_guard lock(lock_);
  const Peer* const peer = peers_.by_handle(handle);
  return peer == nullptr ? nullptr : carrier_name(parts_, *peer);
}

std::optional<EndpointStats> Engine::stats() const {
  const std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  EndpointStats stats = collect_stats(parts_, peers_, reach_.transports(), messenger_, started_);
  stats.application_away = background_.application_away();
  return stats;
}

bool Engine::arm() {
  {
    const std::lock_guard lock(lock_);
    background_.application_sleeps();
    if (!loop_.arm()) return false;
  }
  AfterTurn* const after = after_turn_.load(std::memory_order_relaxed);
  if (after == nullptr || !after->due()) return true;
  after->run(true);
  return false;
}

}  // namespace cluster::engine
