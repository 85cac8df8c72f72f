// An endpoint: the fid_ep of an engine. The application opens an endpoint, binds queues to it (BoundFids),
// and enables it. Until then the endpoint's ops tables contain functions that fail. So the functions for data
// operations need not check whether the endpoint is enabled.
//
// Counters and shared transmit contexts may also be bound after the endpoint is enabled. OpenSHMEM libraries
// first enable the endpoint of the process, and later bind a counter for each context that they open on it.
//
// An alias (fi_ep_alias) is an Endpoint with its own operation flags. It holds a reference to its original,
// and uses the original's engine, bindings and name. An alias of an alias refers to the original, too.
//
// libfabric forbids fi_ep_bind, fi_enable, fi_setopt and fi_close while other threads use the endpoint. So
// this class has no lock. The engine has its own lock.
#pragma once

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "api/auth_key.h"
#include "api/bound_fids.h"
#include "api/call_copy.h"
#include "api/connected_end.h"
#include "api/ep_options.h"
#include "api/fid_object.h"
#include "api/special_ops.h"

namespace cluster::api {

class Endpoint : public fid_ep, public RefCounted {
 public:
  using Handle = fid_ep;
  using Operation = EpOptions::Operation;

  static int open(Domain& domain, const fi_info* info, fid_ep** handle, void* context);
  ~Endpoint();

  // The data operations. They are called only if the endpoint is enabled. `flags` are the flags of the call
  // or, if it has none, of the endpoint.
  ssize_t send(protocol::SendOp& op, const TxFlags& flags) noexcept;
  /// Tries to send a message by the fast lane (shm/fast_lane.h). The message has no flags of its own. If this
  /// returns kGeneralPath, nothing was done, and the caller must send the message by another path.
  /// `fast_end`: only shorter messages may take the lane.
  ssize_t send_short(fi_addr_t to, const engine::ShortSend& message, std::size_t fast_end) noexcept;
  static constexpr ssize_t kGeneralPath = 1;
  ssize_t receive(const protocol::RecvOp& op) noexcept;
  /// Tries to post a receive by the fast lane. The receive has one buffer and no flags of its own. If this
  /// returns false, nothing was done and the caller must call receive().
  bool receive_short(const protocol::ShortReceive& op) { return engine_->take_fast_lane(op.from, op); }
  /// Returns true if a remote access of this length and without flags of its own should try the access lane
  /// (shm/access_lane.h). `longest`: the length of the longest access that may take the lane.
  bool tries_access_lane(std::size_t length, std::size_t longest) const noexcept {
    return length - 1 < longest && engine_->tries_access_lane();
  }
  /// Tries to perform a ShortWrite or ShortRead by the access lane. If this returns false, nothing was done
  /// and the caller must call access().
  template <typename ShortAccess>
  bool access_short(fi_addr_t peer, const ShortAccess& op) noexcept {
    return engine_->take_access_lane(peer, op);
  }
  ssize_t access(protocol::WriteOp& op, const TxFlags& flags) noexcept;
  ssize_t access(protocol::ReadOp& op, const TxFlags& flags) noexcept;
  ssize_t access(protocol::AtomicRmaOp& op, const TxFlags& flags) noexcept;
  /// Does the same as access() for the write or read of deferred work.
  template <typename Op>
  ssize_t access_deferred(Op& op, const TxFlags& flags) noexcept;
  /// Defers the call until its condition is met (FI_TRIGGER).
  int trigger(CallCopy call);

  EpOptions& options() { return options_; }

  /// Implements fi_ep_alias. Returns -FI_EOPBADSTATE before fi_enable.
  int open_alias(fid_t* handle, std::uint64_t flags);
  /// Implements FI_SETOPSFLAG (EpOptions::set_op_flags).
  int set_op_flags(const std::uint64_t* flags);
  int bind(fid_t object, std::uint64_t flags);
  int enable();
  ssize_t cancel(void* context);
  int get_name(void* address, std::size_t* size);
  int set_name(void* address, std::size_t size);
  /// Returns the engine, or null if there is none yet. fi_enable creates the engine, unless an earlier
  /// fi_getname has created it.
  const engine::Engine* opened_engine() const { return engine_ != nullptr ? engine_ : owned_engine_.get(); }

  engine::Engine* engine() const { return engine_; }
  Domain& domain() { return *domain_; }
  /// Returns the connection, or null if this is not an FI_EP_MSG endpoint.
  ConnectedEnd* connected_end() const {
    return original_ ? original_->connected_end_.get() : connected_end_.get();
  }
  /// Writes an FI_SHUTDOWN event that says why the peer was lost.
  void report_loss(const SocketAddress& peer, Status cause);
  /// Returns the endpoint itself or, for an alias, its original.
  Endpoint& origin() { return original_ ? *original_ : *this; }
  const BoundFids& bound() const { return original_ ? original_->bound_ : bound_; }
  /// Marks that the deferred work of this endpoint must wait until the next round. Only DeferredWork calls
  /// this function and the next one, under its mutex.
  void put_off_work(std::uint64_t round) { work_put_off_in_ = round; }
  bool work_is_put_off(std::uint64_t round) const { return work_put_off_in_ == round; }
  /// Returns true if a message to `to` can have FI_MATCH_COMPLETE. Only a single peer with a session reports
  /// that a receive has matched the message.
  bool learns_of_matches(fi_addr_t to) const {
    return type_ == engine::EndpointType::rdm && !engine::is_group(to);
  }
  std::size_t tx_size_left() const { return std::min(options_.tx_size(), engine_->tx_size_left()); }

 private:
  Endpoint(Domain& domain, const fi_info& info, void* context);
  explicit Endpoint(Endpoint& original);

  /// Writes the engine's reports to the bound event queue.
  struct Events final : protocol::LossListener, protocol::GroupListener {
    explicit Events(Endpoint& of) : endpoint(of) {}
    void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) override;
    void group_joined(void* context) override;
    Endpoint& endpoint;
  };

  int ensure_engine();
  int use_handle(fid_t handle);
  bool connect_bound();
  void point_to_ops(bool enabled);
  template <auto engine_call, typename Op>
  ssize_t post(const Op& op) noexcept;
  template <auto engine_call, typename Op>
  Status repeat_after_progress(const Op& op);

  engine::Engine* engine_ = nullptr;  ///< null until fi_enable; an alias has its original's engine
  InheritedFid inherited_fid_{fid};
  EpOptions options_;
  std::unique_ptr<SpecialOps> special_ops_;  ///< null if the tables of ops_tables.h serve the endpoint
  engine::EndpointType type_;
  SocketAddress requested_name_;
  Ref<Domain> domain_;
  BoundFids bound_;
  Ref<Endpoint> original_;  ///< the original, if this is an alias
  Events events_{*this};
  std::unique_ptr<ConnectedEnd> connected_end_;  ///< set only in an FI_EP_MSG endpoint that is no alias
  std::uint64_t work_put_off_in_ = 0;            ///< the last round in which the deferred work had to wait
  AuthKey auth_key_;                             ///< empty if the domain's key applies
  /// Created by fi_enable or the first get_name().
  std::unique_ptr<engine::Engine> owned_engine_;
  std::optional<engine::EndpointRoster::Entry> roster_entry_;  ///< exists while there is an engine
  /// While this is set, peers on this node may access the domain's regions directly, without help from this
  /// side's library.
  std::shared_ptr<void> served_regions_;
};

inline Endpoint& endpoint_of(fid_ep* handle) { return static_cast<Endpoint&>(*handle); }

template <typename Op>
void apply(const TxFlags& flags, Op& op) {
  op.inject = flags.inject;
  op.report = flags.report;
  op.more = flags.more;
  op.fence = flags.fence;
}

/// Calls the engine. If the engine returns `again`, runs one turn of the engine and repeats the call once.
/// The turn is needed because some applications only repeat their call and never read a queue.
template <auto engine_call, typename Op>
ssize_t Endpoint::post(const Op& op) noexcept {
  return guarded([&]() -> ssize_t {
    Status status = (engine_->*engine_call)(op);
    if (status == Status::again) status = repeat_after_progress<engine_call>(op);
    return status == Status::ok ? 0 : -fi_errno_of(status);
  });
}

template <auto engine_call, typename Op>
[[gnu::noinline]] Status Endpoint::repeat_after_progress(const Op& op) {
  engine_->try_poll();
  return (engine_->*engine_call)(op);
}

template <typename Op>
ssize_t Endpoint::access_deferred(Op& op, const TxFlags& flags) noexcept {
  apply(flags, op);
  op.deferred = true;
  const bool inject = op.inject && std::is_same_v<Op, protocol::WriteOp>;
  if (const ssize_t error = options_.limits(Operation::rma).check(op.length, inject)) return error;
  return post<&engine::Engine::access_deferred<Op>>(op);
}

inline ssize_t Endpoint::send(protocol::SendOp& op, const TxFlags& flags) noexcept {
  apply(flags, op);
  op.completion_level = flags.completion_level;
  const EpOptions::Limits& limits = options_.limits(op.tagged ? Operation::tagged : Operation::msg);
  if (const ssize_t error = limits.check(op.length, op.inject)) return error;
  return post<&engine::Engine::send>(op);
}

[[gnu::always_inline]] inline ssize_t Endpoint::send_short(fi_addr_t to, const engine::ShortSend& message,
                                                           std::size_t fast_end) noexcept {
  if (message.header.length >= fast_end) return kGeneralPath;
  return guarded([&] { return engine_->take_fast_lane(to, message) ? 0 : kGeneralPath; });
}

inline ssize_t Endpoint::receive(const protocol::RecvOp& op) noexcept {
  return guarded([&]() -> ssize_t {
    const Status status = engine_->receive(op);
    return status == Status::ok ? 0 : -fi_errno_of(status);
  });
}

}  // namespace cluster::api
